// Each verdict, and that none is given which the seeds do not carry.
#include "syncopate/report/advice.h"

#include <gtest/gtest.h>

#include "tests/report/made_sweep.h"

namespace syncopate::report {
namespace {

class AdviceOf : public ::testing::Test {
 protected:
  void expect(const std::string& verdict, const std::vector<std::string>& words) {
    const Results results = made_.analysed();
    EXPECT_EQ(results.advice.verdict, verdict) << results.advice.sentence;
    for (const std::string& word : words)
      EXPECT_NE((results.advice.sentence + "\n" + results.advice.paragraph).find(word), std::string::npos)
          << word << " in: " << results.advice.sentence << "\n"
          << results.advice.paragraph;
    advice_ = results.advice;
  }

  MadeSweep made_;
  Advice advice_;
};

const std::vector<double> kUsual{0.800, 0.810, 0.790, 0.805, 0.795};

std::vector<double> shifted(double by, double spread) {
  std::vector<double> values = kUsual;
  const double noise[] = {1, -1, 0.5, -0.5, 0};
  for (size_t i = 0; i < values.size(); ++i) values[i] += by + spread * noise[i];
  return values;
}

TEST_F(AdviceOf, AFasterArmThatLosesNothingIsBest) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, shifted(-0.001, 0.003), 1800);
  made_.arm("all-reduce", "all-reduce", 2, shifted(0, 0.003), 700);
  expect("best", {"ddp is the best choice here", "1.80x faster than one worker", "nothing lost", "−0.10 ±",
                  "5 seeds", "Slower than one worker: all-reduce"});
  EXPECT_EQ(advice_.arm, "a-ddp");
}

TEST_F(AdviceOf, AWideIntervalIsUndecided) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, shifted(-0.01, 0.05), 1800);
  expect("undecided", {"Undecided between ddp and single", "more would tell"});
  EXPECT_EQ(advice_.arm, "");
  EXPECT_EQ(advice_.rivals, (std::vector<std::string>{"a-ddp", "a-single"}));
}

TEST_F(AdviceOf, OneSeedDecidesNothing) {
  made_.arm("single", "single", 1, {0.8}, 1000);
  made_.arm("ddp", "ddp", 2, {0.9}, 1800);
  expect("undecided", {"One seed decides nothing about quality", "by speed alone ddp"});
  EXPECT_EQ(advice_.arm, "");
}

TEST_F(AdviceOf, NoneThatIsFaster) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, shifted(0, 0.003), 800);
  expect("none", {"None of these beats one worker on this machine"});
}

TEST_F(AdviceOf, NoneThatIsFasterWithoutALoss) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp, int4", "ddp", 2, shifted(-0.05, 0.003), 1800);
  expect("none", {"without losing quality", "−5.00 ±"});
}

TEST_F(AdviceOf, AFasterOneWithALossDoesNotWin) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, shifted(0, 0.003), 1500);
  made_.arm("int4", "ddp", 2, shifted(-0.05, 0.003), 1900);
  expect("best", {"ddp is the best choice", "int4 is faster still (1.90x) but loses quality"});
}

TEST_F(AdviceOf, SpeedsThatCannotBeToldApartAreUndecided) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, shifted(0, 0.003), 1800);
  made_.arm("all-reduce", "all-reduce", 2, shifted(0, 0.003), 1800);
  const double noise[] = {0.98, 1.03, 0.99, 1.02, 1.0};
  for (MadeRun* run : made_.runs_of("ddp")) run->record.examples_per_s *= noise[run->seed - 1];
  expect("undecided", {"Undecided between", "ddp", "all-reduce", "lie too close"});
}

TEST_F(AdviceOf, BetterAndNoFasterIsBestForQuality) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("sync norm", "ddp", 2, shifted(0.03, 0.003), 900);
  expect("best", {"best choice here for quality", "+3.00 ±", "slower than one worker"});
}

TEST_F(AdviceOf, TheSameBitsAreTheSameQuality) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, kUsual, 1800);
  expect("best", {"with the same quality"});
}

TEST_F(AdviceOf, AnArmThatCheatsIsNeverChosen) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, kUsual, 1800);
  made_.arm("fewer", "ddp", 2, kUsual, 9000);
  for (MadeRun* run : made_.runs_of("fewer")) run->record.examples = 320;
  expect("best", {"ddp is the best choice", "fewer is left out: consumed 320 examples"});
  EXPECT_EQ(advice_.arm, "a-ddp");
}

TEST_F(AdviceOf, SpeedThatABusyMachineExplainsIsNotClaimed) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, kUsual, 1300);
  expect("best", {"1.30x faster"});
  for (MadeRun* run : made_.runs_of("single")) run->record.outside_load = 2;  // of 4 cores
  expect("undecided", {"ddp was 1.30x as fast as one worker", "the machine was busy while single ran"});
  EXPECT_EQ(advice_.arm, "");
}

TEST_F(AdviceOf, SpeedOfRunsSideBySideIsNotClaimed) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, kUsual, 1800);
  for (MadeRun* run : made_.runs_of("ddp")) run->alone = false;
  expect("undecided", {"does not count", "other runs ran at the same time"});
  EXPECT_EQ(advice_.arm, "");
}

TEST_F(AdviceOf, ASpeedThatFewSeedsLeaveOpenIsNeitherClaimedNorDenied) {
  made_.arm("single", "single", 1, {0.8, 0.81}, 1000);
  made_.arm("ddp", "ddp", 2, {0.8, 0.81}, 1800);
  made_.runs_of("ddp")[1]->record.examples_per_s = 1500;
  expect("undecided", {"ddp was 1.65x as fast as one worker", "2 seeds leave anything"});
  EXPECT_EQ(arm_named(made_.analysed(), "ddp").words, "1.65x as fast as one worker, undecided in 2 seeds");
}

TEST_F(AdviceOf, OneArmIsNoComparison) {
  made_.arm("single", "single", 1, kUsual, 1000);
  expect("nothing", {"Only single has finished"});
}

TEST_F(AdviceOf, NothingFinishedIsSaid) {
  made_.arm("single", "single", 1, {0.8}, 1000);
  made_.runs[0].state = std::string("running");
  expect("nothing", {"No run has finished yet"});
}

TEST_F(AdviceOf, PerplexityIsBetterWhenLower) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, kUsual, 1800);
  for (MadeRun& run : made_.runs) {
    const double base = 20 + 0.1 * static_cast<double>(run.seed);
    run.record.eval->measures = {
        {"perplexity", run.name == "ddp" ? base + 3 + 0.01 * static_cast<double>(run.seed) : base}};
  }
  expect("none", {"but worse", "+3.03"});
  for (MadeRun* run : made_.runs_of("ddp")) run->record.eval->measures["perplexity"] -= 6;
  expect("best", {"and better", "−2.97"});
}

TEST_F(AdviceOf, EachProblemHasItsOwnBaseline) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, kUsual, 1800);
  made_.arm("single, 4K", "single", 1, shifted(-0.2, 0), 1000);
  made_.arm("ddp, 4K", "ddp", 2, shifted(-0.2, 0.003), 500);
  for (MadeRun& run : made_.runs) {
    const bool small = run.name.ends_with("4K");
    run.settings["task.limit"] = std::string(small ? "4000" : "0");
    if (!small) continue;
    run.record.examples = 400;
    run.record.data_hash = std::string("less");
  }
  expect("best", {"ddp is the best choice here", "Problem 2: None of these beats one worker"});
  const Results results = made_.analysed();
  EXPECT_EQ(arm_named(results, "ddp, 4K").difference->against, "a-single, 4K");
  for (const ArmResult& arm : results.arms) EXPECT_FALSE(arm.excluded) << arm.name;
}

}  // namespace
}  // namespace syncopate::report
