// Workers that are threads of one process.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/runs.h"

namespace syncopate::test {
namespace {

using Words = std::vector<std::string>;

class DataParallel : public testing::Test {
 protected:
  void SetUp() override { data_ = small_sst2(folder_); }

  std::filesystem::path trained(const std::string& name, const Words& more) {
    const CommandResult result = run_command(train_command(data_, folder_ / name, more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return folder_ / name;
  }
  std::string file(const std::filesystem::path& run, const std::string& name) {
    return read_text(run / name);
  }
  void expect_same_bits(const std::filesystem::path& a, const std::filesystem::path& b) {
    for (const std::string name : {"loss_0.txt", "loss_1.txt", "model/model.safetensors"}) {
      EXPECT_EQ(file(a, name), file(b, name)) << name;
    }
  }

  TempDir folder_;
  std::string data_;
};

TEST_F(DataParallel, ThreadsMatchProcessesBitForBit) {
  const Words common{"--workers", "2", "--steps", "30", "--dropout", "0.1", "--accumulate", "2"};
  const auto with = [&](const std::string& name, const std::string& strategy, Words more) {
    more.insert(more.end(), common.begin(), common.end());
    more.insert(more.end(), {"--strategy", strategy});
    return trained(name, more);
  };
  const auto processes = with("processes", "ddp", {}), threads = with("threads", "data-parallel", {});
  expect_same_bits(processes, threads);
  expect_same_bits(processes, with("apart", "ddp", {"--set", "strategy.share_update=false"}));
  EXPECT_NE(file(threads, "loss_0.txt"), file(threads, "loss_1.txt"));
  const auto foil = with("foil", "data-parallel", {"--clip", "0.9"});
  EXPECT_NE(file(processes, "model/model.safetensors"), file(foil, "model/model.safetensors"));
}

TEST_F(DataParallel, OneProcessStopsAndResumes) {
  const Words settings{"--workers", "2", "--strategy", "data-parallel", "--steps", "150", "--dropout", "0.1"};
  const auto reference = trained("straight", settings);
  const auto run = folder_ / "stopped";
  Process process(train_command(data_, run, settings));
  ASSERT_TRUE(process.until([&] { return losses_of(run).size() > 20; })) << process.err();
  EXPECT_EQ(processes_with(run.string()).size(), 1u);
  process.signal(SIGINT);
  const CommandResult stopped = process.wait();
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_NE(stopped.err.find("continue with --resume"), std::string::npos) << stopped.err;
  ASSERT_LT(losses_of(run).size(), 150u);
  Words again = settings;
  again.push_back("--resume");
  trained("stopped", again);
  expect_same_bits(reference, run);
}

TEST_F(DataParallel, ReportsTheFirstCause) {
  const Words settings{"--workers", "3", "--strategy", "data-parallel", "--steps", "30", "--lr", "1e30"};
  const CommandResult diverged = run_command(train_command(data_, folder_ / "diverged", settings));
  EXPECT_EQ(diverged.exit_code, 5) << diverged.err;
  EXPECT_NE(diverged.err.find("is not a number"), std::string::npos) << diverged.err;
  EXPECT_EQ(diverged.err.find("died"), std::string::npos) << diverged.err;

  const CommandResult missing = run_command(train_command((folder_ / "nowhere").string(), folder_ / "missing",
                                                          {"--workers", "2", "--strategy", "data-parallel"}));
  EXPECT_EQ(missing.exit_code, 3) << missing.err;
  EXPECT_NE(missing.err.find("nowhere"), std::string::npos) << missing.err;
}

TEST_F(DataParallel, HangingWorkerEndsTheRun) {
  const CommandResult hung =
      run_command(train_command(data_, folder_ / "hung",
                                {"--workers", "2", "--strategy", "data-parallel", "--steps", "30",
                                 "--timeout", "2", "--set", "comm.fault=1:5:forward:hang"}));
  EXPECT_EQ(hung.exit_code, 4) << hung.err;
  EXPECT_NE(hung.err.find("rank 1 did not answer for 2 s"), std::string::npos) << hung.err;
}

TEST_F(DataParallel, RejectsOtherLaunchers) {
  const CommandResult by_hand = run_command(train_command(
      data_, folder_ / "hand",
      {"--strategy", "data-parallel", "--rank", "0", "--world-size", "2", "--master", "127.0.0.1:29999"}));
  EXPECT_EQ(by_hand.exit_code, 2) << by_hand.err;
  EXPECT_NE(by_hand.err.find("drives all workers from one process"), std::string::npos) << by_hand.err;
  const CommandResult torchrun =
      run_command(train_command(data_, folder_ / "torchrun", {"--strategy", "data-parallel"}),
                  {"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                   "MASTER_PORT=29998"});
  EXPECT_EQ(torchrun.exit_code, 2) << torchrun.err;
  EXPECT_NE(torchrun.err.find("torchrun"), std::string::npos) << torchrun.err;
}

}  // namespace
}  // namespace syncopate::test
