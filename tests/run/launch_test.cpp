#include "syncopate/run/launch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/run/world.h"
#include "tests/support/child.h"
#include "tests/support/support.h"

namespace syncopate::run {
namespace {

using test::Child;
using test::eventually;
using test::variable;

std::atomic<bool> interrupted{false};

std::filesystem::path folder() { return variable("SYNCOPATE_TEST_FOLDER"); }

void leave_note(const std::string& name, const std::string& text) {
  test::write_text(folder() / (name + ".part"), text);
  std::filesystem::rename(folder() / (name + ".part"), folder() / name);
}

/// Steps of sleep and all-reduce until it is told to stop, or goes wrong in the way `mode` says.
void train(comm::Membership& member, const World& world, const std::string& mode) {
  at::Tensor stop = at::zeros({1});
  for (int64_t step = 1;; ++step) {
    member.status(step, "forward");
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (mode == "data-error" && world.rank == 1 && step == 5) throw DataError("line 7 has no label");
    if (mode == "hang" && world.rank == 1 && step == 5) {
      while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    if (mode == "deaf" && world.rank == 1 && step == 5) {
      leave_note("deaf", "");
      while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    member.status(step, "backward");
    stop[0] = interrupted && mode != "stubborn" ? 1.0 : 0.0;
    member.group->all_reduce(stop, comm::Op::kMax).wait();
    if (step == 10) leave_note("pid" + std::to_string(world.rank), std::to_string(::getpid()));
    if (stop.item<double>() > 0 || (mode == "finish" && step == 20)) return;
  }
}

int work(const World& world, const std::string& mode) {
  const std::string name = std::to_string(world.rank);
  if (mode == "bad-flag" && world.rank == 1) return 2;
  comm::Membership member;
  try {
    member = join(world, "auto", std::chrono::milliseconds(std::stoi(variable("SYNCOPATE_TEST_TIMEOUT"))));
    if (member.lifeline) {
      member.lifeline->watch([&](const lifeline::Failure& failure) {
        leave_note("said" + name, "watchdog: " + failure.for_others());
        ::_exit(4);
      });
    }
    train(member, world, mode);
    member.leave();
    leave_note("said" + name, interrupted ? "interrupted" : "finished");
    return interrupted ? 130 : 0;
  } catch (const Error& error) {
    leave_note("said" + name, error.what());
    member.fail(error.what(), static_cast<int>(error.code()));
    return static_cast<int>(error.code());
  }
}

/// A worker when our launcher's variables are there or it is told by hand; otherwise the launcher.
TEST(LaunchChild, DISABLED_Main) {
  const std::string mode = variable("SYNCOPATE_TEST_MODE");
  WorldFlags flags;
  if (!variable("SYNCOPATE_TEST_RANK").empty()) {
    flags.rank = std::stoi(variable("SYNCOPATE_TEST_RANK"));
    flags.world_size = 3;
    flags.master = variable("SYNCOPATE_TEST_MASTER");
  }
  const World world = find_world(flags, environment_of_process());
  if (world.is_worker()) {
    die_with_parent();
    ::signal(SIGINT, [](int) { interrupted = true; });
    ::_exit(work(world, mode));
  }
  LaunchOptions options;
  options.workers = 3;
  options.argv = test::own_command("LaunchChild");
  options.environment = {{"OPENBLAS_NUM_THREADS", "1"}};
  options.log_folder = folder() / "logs";
  options.timeout = std::chrono::milliseconds(std::stoi(variable("SYNCOPATE_TEST_TIMEOUT")));
  const LaunchResult result = launch(options);
  leave_note("result", fmt::format("{}|{}|{}", result.exit_code, result.rank, result.sentence));
  ::_exit(result.exit_code);
}

class Launch : public testing::Test {
 protected:
  test::Variables variables(const std::string& mode, int timeout_ms = 60000) const {
    return {{"SYNCOPATE_TEST_MODE", mode},
            {"SYNCOPATE_TEST_FOLDER", folder_.path().string()},
            {"SYNCOPATE_TEST_TIMEOUT", std::to_string(timeout_ms)}};
  }
  std::string note(const std::string& name) const { return test::read_text(folder_ / name); }
  bool await_notes(const std::string& name) const {
    return eventually(
        [&] {
          for (const char* rank : {"0", "1", "2"}) {
            if (note(name + rank).empty()) return false;
          }
          return true;
        },
        60);
  }
  pid_t pid(int rank) const { return std::stoi(note("pid" + std::to_string(rank))); }
  bool all_gone() const {
    for (int rank = 0; rank < 3; ++rank) {
      if (::kill(pid(rank), 0) == 0) return false;
    }
    return true;
  }
  std::string said(int rank) const { return note("said" + std::to_string(rank)); }
  const test::TempDir folder_;
};

TEST_F(Launch, RunsWorkersToCompletion) {
  Child launcher("LaunchChild", variables("finish"));
  EXPECT_EQ(launcher.wait(), 0);
  EXPECT_EQ(note("result"), "0|-1|");
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(said(rank), "finished");
  EXPECT_FALSE(note("logs/rank1.log").empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "logs/rank0.log"));
}

class LaunchKill : public Launch, public testing::WithParamInterface<int> {};

TEST_P(LaunchKill, NamesTheKilledRankAndStopsTheOthers) {
  const int victim = GetParam();
  Child launcher("LaunchChild", variables("run"));
  ASSERT_TRUE(await_notes("pid"));
  const Stopwatch watch;
  ::kill(pid(victim), SIGKILL);
  EXPECT_EQ(launcher.wait(), 4);
  EXPECT_LT(watch.seconds(), 3);
  const std::string result = note("result");
  EXPECT_EQ(result.rfind(fmt::format("4|{0}|rank {0} was killed by signal 9 (Killed) during ", victim), 0),
            0u)
      << result;
  EXPECT_NE(result.find("ward of step "), std::string::npos) << result;
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(said(rank).rfind(fmt::format("rank {} died during ", victim), 0), 0u) << said(rank);
  }
  EXPECT_TRUE(all_gone());
}

INSTANTIATE_TEST_SUITE_P(Ranks, LaunchKill, testing::Values(0, 1, 2));

TEST_F(Launch, ReportsAWorkersOwnFailureFirst) {
  Child launcher("LaunchChild", variables("data-error"));
  EXPECT_EQ(launcher.wait(), 3);
  EXPECT_EQ(note("result"), "3|1|line 7 has no label");
  for (const int rank : {0, 2})
    EXPECT_EQ(said(rank), "rank 1 failed during forward of step 5: line 7 has no label");
}

TEST_F(Launch, NamesAWorkerThatExitsBeforeJoining) {
  Child launcher("LaunchChild", variables("bad-flag"));
  const Stopwatch watch;
  EXPECT_EQ(launcher.wait(), 2);
  EXPECT_EQ(note("result").rfind("2|1|rank 1 stopped with exit code 2 during start-up; ", 0), 0u)
      << note("result");
  EXPECT_NE(note("result").find("rank1.log says more"), std::string::npos);
  EXPECT_LT(watch.seconds(), 20);
}

TEST_F(Launch, NamesAStoppedWorkerAtTheTimeout) {
  Child launcher("LaunchChild", variables("run", 5000));
  ASSERT_TRUE(await_notes("pid"));
  ::kill(pid(1), SIGSTOP);
  EXPECT_EQ(launcher.wait(), 4);
  EXPECT_EQ(note("result").rfind("4|1|rank 1 did not answer for 5", 0), 0u) << note("result");
  EXPECT_TRUE(all_gone());
}

TEST_F(Launch, NamesAHangingWorkerAtTheTimeout) {
  Child launcher("LaunchChild", variables("hang", 5000));
  EXPECT_EQ(launcher.wait(), 4);
  EXPECT_EQ(note("result"), "4|1|rank 1 did not answer for 5 s during forward of step 5");
  EXPECT_EQ(said(1).rfind("watchdog: rank 1 did not answer", 0), 0u) << said(1);
}

TEST_F(Launch, WatchdogEndsAnUnresponsiveWorker) {
  Child launcher("LaunchChild", variables("deaf"));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder_ / "deaf"); }));
  // Nobody has come to step 10: find rank 2 by its log.
  const auto find = test::run_command({"pgrep", "-P", std::to_string(launcher.pid())});
  std::vector<int> workers;
  for (const std::string_view line : split(trim(find.out), '\n'))
    workers.push_back(std::stoi(std::string(line)));
  ASSERT_EQ(workers.size(), 3u);
  const Stopwatch watch;
  ::kill(workers[2], SIGKILL);
  EXPECT_EQ(launcher.wait(), 4);
  EXPECT_LT(watch.seconds(), 3);
  EXPECT_EQ(said(1).rfind("watchdog: rank 2 died during backward of step 5", 0), 0u) << said(1);
}

TEST_F(Launch, FirstInterruptStopsCleanly) {
  Child launcher("LaunchChild", variables("run"));
  ASSERT_TRUE(await_notes("pid"));
  launcher.kill(SIGINT);
  EXPECT_EQ(launcher.wait(), 130);
  EXPECT_EQ(note("result"), "130|-1|");
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(said(rank), "interrupted");
}

TEST_F(Launch, SecondInterruptStopsAtOnce) {
  Child launcher("LaunchChild", variables("stubborn"));
  ASSERT_TRUE(await_notes("pid"));
  launcher.kill(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(said(0), "") << "the first was not enough";
  launcher.kill(SIGINT);
  EXPECT_EQ(launcher.wait(), 130);
  EXPECT_TRUE(all_gone());
}

TEST_F(Launch, SuspendedRunContinues) {
  Child launcher("LaunchChild", variables("run", 4000));
  ASSERT_TRUE(await_notes("pid"));
  launcher.kill(SIGTSTP);
  std::this_thread::sleep_for(std::chrono::seconds(6));  // longer than the timeout
  launcher.kill(SIGCONT);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_EQ(note("result"), "");
  launcher.kill(SIGINT);
  EXPECT_EQ(launcher.wait(), 130) << note("result");
}

TEST_F(Launch, KillingTheLauncherLeavesNoOrphan) {
  Child launcher("LaunchChild", variables("run"));
  ASSERT_TRUE(await_notes("pid"));
  launcher.kill(SIGKILL);
  EXPECT_EQ(launcher.wait(), 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return all_gone(); }));
}

class ByHandKill : public LaunchKill {};

TEST_P(ByHandKill, OthersNameTheKilledRank) {
  const int victim = GetParam();
  const int port = lifeline::LifelineServer(lifeline::LifelineServerOptions{}).port();
  std::vector<std::unique_ptr<Child>> workers;
  for (int rank = 0; rank < 3; ++rank) {
    test::Variables told = variables("run");
    told["SYNCOPATE_TEST_RANK"] = std::to_string(rank);
    told["SYNCOPATE_TEST_MASTER"] = fmt::format("127.0.0.1:{}", port);
    workers.push_back(std::make_unique<Child>("LaunchChild", told));
  }
  ASSERT_TRUE(await_notes("pid"));
  const Stopwatch watch;
  workers[static_cast<size_t>(victim)]->kill(SIGKILL);
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(workers[static_cast<size_t>(rank)]->wait(), 4);
    EXPECT_EQ(said(rank).rfind(fmt::format("rank {} died during ", victim), 0), 0u) << said(rank);
    EXPECT_NE(said(rank).find("ward of step "), std::string::npos) << said(rank);
  }
  EXPECT_LT(watch.seconds(), 3);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ByHandKill, testing::Values(0, 2));

}  // namespace
}  // namespace syncopate::run
