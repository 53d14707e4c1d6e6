#include "syncopate/lab/probe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "syncopate/lab/sweep.h"
#include "syncopate/record/run_folder.h"
#include "tests/support/support.h"

namespace syncopate::lab {
namespace {

/// Begins like a run, with steps of 100 ms, and goes on until it is stopped.
class Beginner : public Runner {
 public:
  std::vector<Launch> launches;
  bool broken = false;
  double bad_rate = -1;  ///< with which a run breaks
  bool one_step = false;

  std::unique_ptr<RunInProgress> start(const Launch& launch) override {
    launches.push_back(launch);
    std::filesystem::create_directories(launch.folder);
    const bool breaks = broken || launch.spec.optim.lr == bad_rate;
    if (!breaks) {
      test::write_text(launch.log,
                       "cpu\n640 training, 10 validation and 64 test examples · 32 per step · 20 steps\n");
      std::string steps;
      for (int i = 1; i <= (one_step ? 1 : 9); ++i)
        steps += fmt::format("{{\"step\":{},\"ms\":{}}}\n", i, i == 1 ? 5000 : 100);
      test::write_text(record::RunFolder{launch.folder}.steps(), steps);
    }
    return std::make_unique<Run>(breaks, one_step);
  }

 private:
  class Run : public RunInProgress {
   public:
    Run(bool broken, bool ends) : broken_(broken), ends_(ends) {}
    std::optional<Ending> look() override {
      if (broken_) return Ending{.exit_code = 3, .message = "no such data"};
      if (ends_) return Ending{};
      return stopped_ ? std::optional(Ending{.exit_code = 130}) : std::nullopt;
    }
    void stop() override { stopped_ = true; }

   private:
    bool broken_, ends_, stopped_ = false;
  };
};

Plan plan_of(const test::TempDir& folder, const std::string& text) {
  test::write_text(folder / "x.toml", text);
  return survey(read_experiment(folder / "x.toml"), folder / "out", false);
}

const std::string kRows =
    "[settings]\nglobal_batch=32\n[axes]\nepochs=[1,3]\nlr=[0.1,0.2]\nseed=[1,2]\n[[row]]\nstrategy="
    "\"single\"\n";

TEST(Probe, OneSpeaksForAllThatCostTheSame) {
  const test::TempDir folder;
  const Plan plan = plan_of(folder, kRows);
  Beginner runner;
  const auto estimates = estimate(plan, {}, runner);
  EXPECT_EQ(runner.launches.size(), 1u) << "seeds, rates and lengths apart they are alike";
  ASSERT_EQ(estimates.size(), 8u);
  // 650 examples are 21 steps of 32 an epoch; 64 test examples count as two thirds of a step.
  EXPECT_NEAR(estimates.front().seconds, 0.1 * (21 + 64.0 / 32 / 3), 0.1);
  EXPECT_NEAR(estimates.back().seconds, 0.1 * 3 * (21 + 64.0 / 32 / 3), 0.1);
  EXPECT_FALSE(std::filesystem::exists(runner.launches[0].folder)) << "nothing is left behind";
  EXPECT_FALSE(std::filesystem::exists(runner.launches[0].log));
  Beginner other;
  estimate(plan_of(folder, kRows + "[[row]]\nstrategy=\"ddp\"\n"), {}, other);
  EXPECT_EQ(other.launches.size(), 2u) << "the foil: another strategy costs something else";
}

TEST(Probe, TellsWhatCannotRun) {
  const test::TempDir folder;
  Beginner runner;
  runner.broken = true;
  const auto estimates = estimate(plan_of(folder, kRows), {}, runner);
  EXPECT_EQ(estimates.front().failure, "no such data");
  EXPECT_TRUE(std::isnan(estimates.front().seconds));
}

TEST(Probe, AFailureSpeaksForItsRunAlone) {
  const test::TempDir folder;
  Beginner runner;
  runner.bad_rate = 0.1;
  const auto estimates = estimate(plan_of(folder, kRows), {}, runner);
  EXPECT_EQ(estimates.front().failure, "no such data");
  EXPECT_EQ(estimates.back().failure, "") << "another rate";
  EXPECT_GT(estimates.back().seconds, 0);
  Beginner broken;
  broken.broken = true;
  estimate(plan_of(folder, kRows), {}, broken);
  EXPECT_LE(broken.launches.size(), 3u) << "the foil: nothing runs, and that is soon clear";
}

TEST(Probe, ARunOfOneStepCanRunThoughItsTimeIsNotKnown) {
  const test::TempDir folder;
  Beginner runner;
  runner.one_step = true;
  const auto estimates = estimate(plan_of(folder, kRows), {}, runner);
  EXPECT_EQ(estimates.front().failure, "");
  EXPECT_TRUE(std::isnan(estimates.front().seconds));
  EXPECT_EQ(runner.launches.size(), 1u);
}

TEST(Probe, FoldersCannotBeGuessed) {
  const test::TempDir folder;
  Beginner one, other;
  estimate(plan_of(folder, kRows), {}, one);
  estimate(plan_of(folder, kRows), {}, other);
  EXPECT_NE(one.launches[0].folder, other.launches[0].folder) << "of one process";
}

TEST(Probe, RowsAfterAPhaseThatIsNotDoneStartAsThePhaseDoes) {
  const test::TempDir folder;
  Beginner runner;
  estimate(plan_of(folder,
                   "[[phase]]\nname=\"words\"\ntask=\"mlm\"\nmodel=\"bert-mini\"\n"
                   "[[row]]\ntask=\"rte\"\ninit_from=\"phase:words\"\n"),
           {}, runner);
  ASSERT_EQ(runner.launches.size(), 2u);
  EXPECT_EQ(runner.launches[1].spec.model.init_from, "");
  EXPECT_EQ(runner.launches[1].spec.model.name, "bert-mini");
}

}  // namespace
}  // namespace syncopate::lab
