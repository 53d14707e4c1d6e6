// Workers that are not of the run they come to, and runs that want one folder.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/runs.h"

namespace syncopate::test {
namespace {

using Words = std::vector<std::string>;

class Strangers : public testing::Test {
 protected:
  void SetUp() override { data_ = small_sst2(folder_); }

  /// A worker started by hand, at a port that `number` decides.
  struct Worker {
    int rank = 0, number = 0;
    Words more{};
    std::string data{}, out{}, world_size = "2";
  };
  Words command(const Worker& worker) {
    const std::string port = std::to_string(30100 + 8 * (::getpid() % 100) + worker.number);
    Words all{"--strategy",   "ddp",
              "--steps",      "8",
              "--rank",       std::to_string(worker.rank),
              "--timeout",    "20",
              "--master",     "127.0.0.1:" + port,
              "--world-size", worker.world_size};
    all.insert(all.end(), worker.more.begin(), worker.more.end());
    return train_command(worker.data.empty() ? data_ : worker.data,
                         folder_ / (worker.out.empty() ? "run" + std::to_string(worker.number) : worker.out),
                         all);
  }
  static void expect_refusal(const CommandResult& result, const std::string& part) {
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }

  TempDir folder_;
  std::string data_;
};

TEST_F(Strangers, AreTurnedAwayAndTheRunWaitsForItsOwn) {
  Process first(command({.rank = 0}), {"SYNCOPATE_TOKEN=ours"});
  const auto come = [&](const Worker& worker, const std::string& token = "ours") {
    return run_command(command(worker), {"SYNCOPATE_TOKEN=" + token});
  };
  const auto second = [&](const Words& more) { return come({.rank = 1, .more = more}); };
  expect_refusal(second({"--lr", "0.25"}), "--lr is 0.25 at rank 1 and 0.001 in the run");
  expect_refusal(second({"--steps", "9"}), "--steps is 9 at rank 1 and 8 in the run");
  expect_refusal(second({"--strategy", "all-reduce"}),
                 "--strategy is all-reduce at rank 1 and ddp in the run");
  expect_refusal(come({.rank = 1, .out = "elsewhere"}), "--out is ");
  expect_refusal(come({.rank = 1}, "theirs"), "another token");
  expect_refusal(come({.rank = 1, .world_size = "3"}), "rank 1 expects 3 workers but the run at");
  const CommandResult ours = second({});
  EXPECT_EQ(ours.exit_code, 0) << ours.err;
  const CommandResult result = first.wait(60);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("turned a worker away: --lr is 0.25"), std::string::npos) << result.err;
}

TEST_F(Strangers, OtherDataAreNoticedBeforeTheFirstStep) {
  const TempDir elsewhere;
  const std::string same = small_sst2(elsewhere);
  Process first(command({.rank = 0, .number = 1}));
  const CommandResult second = run_command(command({.rank = 1, .number = 1, .data = same}));
  EXPECT_EQ(second.exit_code, 0) << "the foil: where they lie does not matter. " << second.err;
  EXPECT_EQ(first.wait(60).exit_code, 0);

  write_text(std::filesystem::path(same) / "train.tsv",
             read_text(std::filesystem::path(same) / "train.tsv") + "one more of them\t1\n");
  Process other(command({.rank = 0, .number = 2}));
  expect_refusal(run_command(command({.rank = 1, .number = 2, .data = same})),
                 "ranks differ in what they train: rank 0 has training data of");
  expect_refusal(other.wait(60), "rank 1 has training data of");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run2")) << "nothing was begun";
}

TEST_F(Strangers, NobodyListensToOtherMachinesWithoutASecret) {
  for (const std::string rank : {"0", "1"}) {
    expect_refusal(run_command(train_command(data_, folder_ / "run",
                                             {"--strategy", "ddp", "--steps", "8", "--rank", rank,
                                              "--world-size", "2", "--master", "192.0.2.1:30000"})),
                   "give all workers the same secret in SYNCOPATE_TOKEN or --token-file FILE, or --insecure");
  }
}

TEST_F(Strangers, OneRunAtATimeHoldsAFolder) {
  const Words endless{"--strategy", "ddp", "--workers", "2", "--steps", "100000", "--save-every", "5"};
  const auto out = folder_ / "run";
  Process first(train_command(data_, out, endless));
  ASSERT_TRUE(first.until([&] { return std::filesystem::exists(out / "checkpoint.safetensors"); }))
      << first.err();
  Words resumed = endless;
  resumed.push_back("--resume");
  expect_refusal(run_command(train_command(data_, out, resumed)), "is in use by process ");
  first.signal(SIGKILL);
  first.wait();
  for (int i = 0; i < 300 && !processes_with(out.string()).empty(); ++i) ::usleep(10000);
  Process second(train_command(data_, out, resumed));
  EXPECT_TRUE(second.until([&] { return second.err().find("resumed after step") != std::string::npos; }))
      << second.err();
  // One without a launcher is refused alike.
  expect_refusal(run_command(train_command(data_, out, {"--strategy", "single", "--steps", "8", "--resume"})),
                 "is in use by process ");
}

}  // namespace
}  // namespace syncopate::test
