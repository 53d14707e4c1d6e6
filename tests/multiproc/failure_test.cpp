// What the others do when a worker dies, hangs or is interrupted. The failures are real: the fault makes a
// worker send itself SIGKILL or SIGSTOP at a known place.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/runs.h"

namespace syncopate::test {
namespace {

using Words = std::vector<std::string>;

class Failure : public testing::Test {
 protected:
  void SetUp() override { data_ = small_sst2(folder_); }

  Words command(const std::string& name, const Words& more) {
    Words all{"--strategy", "ddp", "--steps", "100000"};
    all.insert(all.end(), more.begin(), more.end());
    return train_command(data_, folder_ / name, all);
  }
  size_t steps(const std::string& name) { return read_text(folder_ / (name + "/loss_0.txt")).size() / 19; }
  double seconds_since_last_step(const std::string& name) {
    const auto last = std::filesystem::last_write_time(folder_ / (name + "/steps.jsonl"));
    return std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - last).count();
  }

  TempDir folder_;
  std::string data_;
};

struct Death {
  int rank;
  int step;
  const char* phase;
};

class KilledRank : public Failure, public testing::WithParamInterface<Death> {};
INSTANTIATE_TEST_SUITE_P(
    Places, KilledRank,
    testing::Values(Death{0, 4, "forward"}, Death{2, 4, "forward"}, Death{0, 4, "backward"},
                    Death{1, 4, "backward"}, Death{0, 4, "exchange"}, Death{0, 4, "evaluation"},
                    Death{2, 4, "evaluation"}, Death{0, 6, "checkpoint"}, Death{1, 6, "checkpoint"}),
    [](const auto& at) { return std::string(at.param.phase) + std::to_string(at.param.rank); });

TEST_P(KilledRank, IsNamedAndStopsTheOthersWithinThreeSeconds) {
  const Death death = GetParam();
  const CommandResult result =
      run_command(command("run", {"--workers", "3", "--eval-every", "4", "--save-every", "6", "--set",
                                  "comm.fault=" + std::to_string(death.rank) + ":" +
                                      std::to_string(death.step) + ":" + death.phase + ":kill"}));
  EXPECT_LT(seconds_since_last_step("run"), 3.0);
  EXPECT_EQ(result.exit_code, 4) << result.err;
  const std::string who = "rank " + std::to_string(death.rank);
  const std::string what = std::string(death.phase) + " of step " + std::to_string(death.step);
  const size_t sentence = result.err.find("syncopate: ");
  ASSERT_NE(sentence, std::string::npos) << result.err;
  const std::string last = result.err.substr(sentence);
  EXPECT_NE(last.find(who), std::string::npos) << result.err;
  EXPECT_NE(last.find(what), std::string::npos) << result.err;
  EXPECT_EQ(last.find('\n'), last.size() - 1) << "one sentence: " << result.err;
  EXPECT_TRUE(processes_with(folder_.path().string()).empty());
}

TEST_F(Failure, FrozenWorkerIsGivenUpAtTheTimeout) {
  const CommandResult result = run_command(
      command("run", {"--workers", "3", "--timeout", "4", "--set", "comm.fault=1:4:forward:stop"}));
  EXPECT_LT(seconds_since_last_step("run"), 4.0 + 3.0);
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_NE(result.err.find("rank 1"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("forward of step 4"), std::string::npos) << result.err;
  EXPECT_TRUE(processes_with(folder_.path().string()).empty());
}

TEST_F(Failure, StoppedWorkerIsNamedAtOnceAndMayGoOn) {
  Process launcher(command("run", {"--workers", "2", "--timeout", "60"}));
  ASSERT_TRUE(launcher.until([&] { return steps("run") > 3; })) << launcher.err();
  std::vector<int> workers = processes_with(folder_.path().string());
  std::erase(workers, launcher.pid());
  ASSERT_EQ(workers.size(), 2u);
  ::kill(workers.front(), SIGSTOP);
  const std::string name =
      "(process " + std::to_string(workers.front()) + ") was stopped by a signal during ";
  ASSERT_TRUE(launcher.until([&] { return launcher.err().find(name) != std::string::npos; }, 10))
      << launcher.err();
  EXPECT_LT(seconds_since_last_step("run"), 3.0);
  const size_t before = steps("run");
  ::kill(workers.front(), SIGCONT);
  EXPECT_TRUE(launcher.until([&] { return steps("run") > before + 3; })) << launcher.err();
  launcher.signal(SIGINT);
  EXPECT_EQ(launcher.wait().exit_code, 130) << launcher.err();
}

TEST_F(Failure, HangingWorkerIsGivenUpAtTheTimeout) {
  const CommandResult result = run_command(
      command("run", {"--workers", "3", "--timeout", "4", "--set", "comm.fault=2:4:backward:hang"}));
  EXPECT_LT(seconds_since_last_step("run"), 4.0 + 3.0);
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_NE(result.err.find("rank 2"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("backward of step 4"), std::string::npos) << result.err;
  EXPECT_TRUE(processes_with(folder_.path().string()).empty());
}

TEST_F(Failure, KillingTheLauncherLeavesNoOrphan) {
  Process launcher(command("run", {"--workers", "3"}));
  ASSERT_TRUE(launcher.until([&] { return steps("run") > 3; })) << launcher.err();
  EXPECT_EQ(processes_with(folder_.path().string()).size(), 4u);
  launcher.signal(SIGKILL);
  launcher.wait();
  const auto gone = [&] { return processes_with(folder_.path().string()).empty(); };
  for (int i = 0; i < 300 && !gone(); ++i) ::usleep(10000);
  EXPECT_TRUE(gone());
}

TEST_F(Failure, CtrlCTwiceStopsAtOnce) {
  // A worker that hangs cannot end in order: the first Ctrl-C waits for it, the second does not.
  Process launcher(
      command("run", {"--workers", "2", "--timeout", "600", "--set", "comm.fault=1:5:forward:hang"}));
  ASSERT_TRUE(launcher.until([&] { return steps("run") >= 4; })) << launcher.err();
  launcher.signal(SIGINT);
  ::usleep(500000);
  EXPECT_TRUE(launcher.running());
  launcher.signal(SIGINT);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(launcher.wait().exit_code, 130);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 1.0);
  EXPECT_TRUE(processes_with(folder_.path().string()).empty());
}

TEST_F(Failure, SingleWorkerStopsCleanly) {
  Process alone(train_command(data_, folder_ / "run", {"--strategy", "single", "--steps", "100000"}));
  ASSERT_TRUE(alone.until([&] { return steps("run") > 3; })) << alone.err();
  alone.signal(SIGINT);
  EXPECT_EQ(alone.wait().exit_code, 130);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/checkpoint.safetensors"));
}

TEST_F(Failure, SurvivorsStartedByHandNameTheDeadRank) {
  for (const int dead : {0, 1}) {
    const std::string name = "run" + std::to_string(dead);
    const std::string master = "127.0.0.1:" + std::to_string(29700 + dead + ::getpid() % 200);
    std::vector<std::unique_ptr<Process>> workers;
    for (int rank = 0; rank < 3; ++rank) {
      workers.push_back(std::make_unique<Process>(
          command(name, {"--rank", std::to_string(rank), "--world-size", "3", "--master", master, "--set",
                         "comm.fault=" + std::to_string(dead) + ":5:backward:kill"})));
    }
    for (int rank = 0; rank < 3; ++rank) {
      const CommandResult result = workers[static_cast<size_t>(rank)]->wait(60);
      if (rank == dead) {
        EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
        continue;
      }
      EXPECT_EQ(result.exit_code, 4) << result.err;
      EXPECT_NE(result.err.find("rank " + std::to_string(dead) + " died during backward of step 5"),
                std::string::npos)
          << result.err;
    }
    EXPECT_LT(seconds_since_last_step(name), 3.0);
  }
}

TEST_F(Failure, ReportsATakenPort) {
  const std::string port = std::to_string(29950 + ::getpid() % 40);
  Process holder({"python3", "-c",
                  "import socket,sys,time;s=socket.socket();s.bind(('127.0.0.1'," + port +
                      "));s.listen();print('ready',file=sys.stderr,flush=True);time.sleep(60)"});
  ASSERT_TRUE(holder.until([&] { return !holder.err().empty(); }));
  const CommandResult result =
      run_command(command("run", {"--rank", "0", "--world-size", "2", "--master", "127.0.0.1:" + port}));
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_NE(result.err.find(port), std::string::npos) << result.err;
}

}  // namespace
}  // namespace syncopate::test
