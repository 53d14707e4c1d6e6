// Whoever is asked to stop saves first, whatever the signal and however seldom workers talk.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "syncopate/base/clock.h"
#include "tests/support/runs.h"

namespace syncopate::test {
namespace {

using Words = std::vector<std::string>;

class Stopped : public testing::Test {
 protected:
  void SetUp() override { data_ = small_sst2(folder_); }
  /// Two workers that would talk to each other once a day.
  Words silent(const Words& more = {}) {
    Words all{"--strategy", "local-sgd", "--workers",    "2",      "--set", "strategy.every=1000000",
              "--steps",    "2000000",   "--eval-every", "1000000"};
    all.insert(all.end(), more.begin(), more.end());
    return train_command(data_, folder_ / "run", all);
  }
  int64_t steps(int rank) const {
    const std::string text = read_text(folder_ / ("run/loss_" + std::to_string(rank) + ".txt"));
    return std::count(text.begin(), text.end(), '\n');
  }
  bool saved() const { return std::filesystem::exists(folder_ / "run/checkpoint.safetensors"); }

  TempDir folder_;
  std::string data_;
};

TEST_F(Stopped, SignalsSaveAtAnyRhythm) {
  Words words = silent();
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) {
    const int64_t before = steps(0);
    Process run(words);
    ASSERT_TRUE(run.until([&] { return steps(0) > before + 5 && steps(1) > before + 5; })) << run.err();
    const Stopwatch watch;
    run.signal(signal);
    const CommandResult result = run.wait(60);
    EXPECT_LT(watch.seconds(), 20) << signal;
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_NE(result.err.find("stopped after step "), std::string::npos) << result.err;
    EXPECT_TRUE(saved());
    EXPECT_EQ(steps(0), steps(1)) << "all after the same step";
    EXPECT_EQ(losses_of(folder_ / "run").size(), static_cast<size_t>(steps(0))) << "every loss is on record";
    EXPECT_TRUE(processes_with(folder_.path().string()).empty());
    if (signal == SIGTERM) words.push_back("--resume");
  }
}

TEST_F(Stopped, BetweenExchangesResumesBitForBit) {
  const auto command = [&](const std::string& name, const Words& more) {
    Words all{"--strategy", "local-sgd", "--workers",    "2",    "--set",        "strategy.every=40",
              "--steps",    "120",       "--eval-every", "1000", "--save-every", "1000"};
    all.insert(all.end(), more.begin(), more.end());
    return train_command(data_, folder_ / name, all);
  };
  const CommandResult straight = run_command(command("straight", {}));
  ASSERT_EQ(straight.exit_code, 0) << straight.err;
  Process run(command("run", {}));
  ASSERT_TRUE(run.until([&] { return steps(0) > 5; })) << run.err();
  run.signal(SIGTERM);
  const CommandResult stopped = run.wait(60);
  ASSERT_EQ(stopped.exit_code, 130) << stopped.err;
  const CommandResult resumed = run_command(command("run", {"--resume"}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const auto model = [&](const std::string& name) {
    return read_text(folder_ / name / "model/model.safetensors");
  };
  EXPECT_EQ(model("run"), model("straight"));
  EXPECT_EQ(losses_of(folder_ / "run"), losses_of(folder_ / "straight"));
  const CommandResult foil = run_command(command("foil", {"--seed", "6"}));
  EXPECT_NE(model("foil"), model("straight"));
}

TEST_F(Stopped, AWorkerByHandTakesTheOthersAlong) {
  std::vector<std::unique_ptr<Process>> workers;
  for (const std::string rank : {"0", "1"}) {
    Words words = silent({"--rank", rank, "--world-size", "2", "--master",
                          "127.0.0.1:" + std::to_string(31000 + ::getpid() % 500)});
    words.erase(std::find(words.begin(), words.end(), "--workers"));
    words.erase(std::find(words.begin(), words.end(), "2"));
    workers.push_back(std::make_unique<Process>(words));
  }
  ASSERT_TRUE(workers[0]->until([&] { return steps(0) > 5 && steps(1) > 5; })) << workers[0]->err();
  workers[1]->signal(SIGTERM);  // a preempted machine: the others hear of it by the lifeline alone
  for (const auto& worker : workers) {
    const CommandResult result = worker->wait(20);
    EXPECT_EQ(result.exit_code, 130) << result.err;
  }
  EXPECT_TRUE(saved());
  EXPECT_EQ(steps(0), steps(1));
}

TEST_F(Stopped, SavesByTheClockAtAnyRhythm) {
  Process run(silent({"--save-every", "0.5s"}));
  ASSERT_TRUE(run.until([&] { return saved(); })) << run.err();
  const auto first = std::filesystem::last_write_time(folder_ / "run/checkpoint.safetensors");
  EXPECT_TRUE(run.until(
      [&] { return std::filesystem::last_write_time(folder_ / "run/checkpoint.safetensors") != first; }));
  run.signal(SIGKILL);
  run.wait();
  for (int i = 0; i < 300 && !processes_with(folder_.path().string()).empty(); ++i) ::usleep(10000);
  Process again(silent({"--save-every", "0.5s", "--resume"}));
  EXPECT_TRUE(again.until([&] { return again.err().find("resumed after step") != std::string::npos; }))
      << again.err();
}

TEST_F(Stopped, NohupStaysNohup) {
  Process run({"sh",
               "-c",
               "trap '' HUP; exec \"$@\"",
               "sh",
               program().string(),
               "train",
               "--task",
               "sst2",
               "--data",
               data_,
               "--model",
               "bert-tiny",
               "--strategy",
               "ddp",
               "--workers",
               "2",
               "--max-length",
               "16",
               "--steps",
               "1000000",
               "--out",
               (folder_ / "run").string(),
               "--threads",
               "1"});
  ASSERT_TRUE(run.until([&] { return steps(0) > 3; })) << run.err();
  run.signal(SIGHUP);
  const int64_t before = steps(0);
  EXPECT_TRUE(run.until([&] { return steps(0) > before + 10; })) << "it goes on";
}

TEST_F(Stopped, AnExceptionThatNobodyCatchesIsOneSentence) {
  const CommandResult result = run_command(train_command(
      data_, folder_ / "run",
      {"--strategy", "ddp", "--workers", "2", "--steps", "100000", "--set", "comm.fault=1:4:forward:throw"}));
  EXPECT_EQ(result.exit_code, 70) << result.err;
  const size_t start = result.err.find("syncopate: ");
  ASSERT_NE(start, std::string::npos) << result.err;
  EXPECT_EQ(result.err.substr(start), "syncopate: unexpected failure: made on purpose; please report it\n");
  EXPECT_NE(read_text(folder_ / "run/rank1.log").find("with a trace behind it"), std::string::npos);
  EXPECT_TRUE(processes_with(folder_.path().string()).empty());
}

}  // namespace
}  // namespace syncopate::test
