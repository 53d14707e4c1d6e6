// Shares and ends that are decided while a run goes on, with real processes.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/runs.h"

namespace syncopate::test {
namespace {

using Words = std::vector<std::string>;

class Course : public testing::Test {
 protected:
  void SetUp() override { data_ = small_sst2(folder_); }

  CommandResult train(const std::string& name, const Words& more) {
    return run_command(train_command(data_, folder_ / name, more));
  }
  nlohmann::json result_of(const std::string& name) {
    return nlohmann::json::parse(read_text(folder_ / name / "result.json"));
  }
  int64_t lines(const std::string& name, const std::string& file) {
    const std::string text = read_text(folder_ / name / file);
    return std::count(text.begin(), text.end(), '\n');
  }

  TempDir folder_;
  std::string data_;
};

TEST_F(Course, TimeLimitStopsARunAndALongerOneResumesIt) {
  Words settings{"--workers", "2", "--strategy", "ddp", "--steps", "1000000", "--time-limit", "2"};
  const CommandResult ended = train("run", settings);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const nlohmann::json result = result_of("run");
  EXPECT_EQ(result.at("ended"), "time limit");
  const int64_t steps = result.at("steps");
  EXPECT_GT(steps, 0);
  EXPECT_EQ(lines("run", "loss_0.txt"), steps);
  EXPECT_EQ(lines("run", "loss_1.txt"), steps);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/model/model.safetensors"));
  EXPECT_EQ(result.at("eval").at("step"), steps);

  settings.back() = "1000";
  settings[5] = std::to_string(steps + 7);
  settings.push_back("--resume");
  const CommandResult unasked = train("run", settings);
  EXPECT_EQ(unasked.exit_code, 2) << unasked.err;
  EXPECT_NE(unasked.err.find("train.time_limit was 2.0 and is 1000.0 now; add --extend"), std::string::npos)
      << unasked.err;
  EXPECT_EQ(result_of("run"), result) << "a refusal leaves the run as it was";
  settings.push_back("--extend");
  const CommandResult again = train("run", settings);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(result_of("run").at("ended"), "steps");
  EXPECT_EQ(lines("run", "loss_0.txt"), steps + 7);
}

TEST_F(Course, BalancedSharesSumToTheGlobalBatchAndAreRecorded) {
  for (const std::string strategy : {"ddp", "data-parallel"}) {
    const CommandResult done = train(strategy, {"--workers", "2", "--strategy", strategy, "--steps", "40",
                                                "--balance", "--set", "train.balance_every=8"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const auto shares = result_of(strategy).at("shares").get<std::vector<int64_t>>();
    ASSERT_EQ(shares.size(), 2u);
    EXPECT_EQ(shares[0] + shares[1], 10);
    EXPECT_GE(std::min(shares[0], shares[1]), 1);
  }
  train("equal", {"--workers", "2", "--strategy", "ddp", "--steps", "10"});
  EXPECT_FALSE(result_of("equal").contains("shares"));
}

TEST_F(Course, RejectsSettingsOutOfRange) {
  for (const Words& wrong :
       {Words{"--patience", "-1"}, Words{"--time-limit", "-3"}, Words{"--set", "optim.plateau_factor=0"},
        Words{"--set", "optim.plateau_patience=0"}, Words{"--balance", "--strategy", "local-sgd"},
        Words{"--balance", "--strategy", "hogwild"}, Words{"--set", "train.balance_every=0"}}) {
    const CommandResult refused = train("wrong", wrong);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
}

}  // namespace
}  // namespace syncopate::test
