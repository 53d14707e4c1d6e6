// Each verdict, and that none is given which the seeds do not carry.
#include "syncopate/report/advice/advice.h"

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
  expect("best", {"ddp is the best choice here", "1.80x as fast as one worker", "nothing lost", "−0.10 ±",
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
  expect("best", {"1.30x as fast"});
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

TEST_F(AdviceOf, ABaselineThatIsFasterThanTheOthersIsBest) {
  made_.sweep["baseline"] = "ddp";
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 4, kUsual, 3500);
  made_.arm("all-reduce", "all-reduce", 4, kUsual, 1500);
  expect("best", {"ddp is the best choice here: 3.50x as fast as one worker", "it is the baseline"});
  EXPECT_EQ(advice_.arm, "a-ddp");
  for (MadeRun* run : made_.runs_of("all-reduce")) run->record.examples_per_s *= 2.5;
  expect("best", {"all-reduce is the best choice here"});
}

TEST_F(AdviceOf, QualityIsThatAgainstOneWorkerAndNotAgainstAControl) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("big", "ddp", 2, shifted(-0.1, 0.003), 1900);
  made_.arm("control", "single", 1, shifted(-0.1, 0.003), 1000);
  for (MadeRun& run : made_.runs) {
    if (run.name == "single") continue;
    run.record.global_batch = 128;
    run.record.steps = 25;
    run.losses.resize(25);
  }
  for (MadeRun* run : made_.runs_of("control")) {
    run->kind = std::string("control");
    run->control_of = std::string("a-big");
  }
  expect("none", {"big is 1.90x as fast as one worker, but worse", "−10.00 ±",
                  "Against control, big has a difference of +0.00 ± 0.00 points (the same)"});
}

TEST_F(AdviceOf, QualityIsThatAgainstTheBestOfSeveralSingleWorkers) {
  made_.arm("single 32", "single", 1, kUsual, 1000);
  made_.arm("single 512", "single", 1, shifted(-0.2, 0.003), 1000);
  made_.arm("ddp 512", "ddp", 2, shifted(-0.2, 0.003), 1900);
  for (MadeRun& run : made_.runs) {
    const bool large = run.name.ends_with("512");
    run.settings["train.global_batch"] = std::string(large ? "512" : "32");
    if (!large) continue;
    run.record.global_batch = 512;
    run.record.steps = 7;
    run.losses.resize(7);
  }
  made_.sweep["differs"] = {"batch"};
  expect("none", {"without losing quality", "−20.00 ±"});
  EXPECT_EQ(arm_named(made_.analysed(), "ddp 512").difference->against, "a-single 512");
}

TEST_F(AdviceOf, ASureLossIsTold) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, shifted(-0.005, 0.002), 1800);
  expect("best", {"it loses 0.50 points (± ", "less than the one point that is tolerated here"});
  EXPECT_EQ(advice_.sentence.find("nothing lost"), std::string::npos);
  made_.arm("all-reduce", "all-reduce", 2, shifted(-0.005, 0.002), 1800);
  expect("undecided", {"ddp loses 0.50 points"});
  EXPECT_EQ(advice_.sentence.find("none loses"), std::string::npos);
}

TEST_F(AdviceOf, AnArmWithSeedsThatDivergedOrFailedIsNeverBest) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, kUsual, 1800);
  expect("best", {"ddp is the best choice"});
  made_.runs_of("ddp")[4]->state = std::string("diverged");
  made_.arm("dead", "all-reduce", 2, kUsual, 1800);
  for (MadeRun* run : made_.runs_of("dead")) run->state = std::string("diverged");
  expect("undecided", {"ddp is 1.80x as fast as one worker, but seed 5 diverged", "Seed 5 of ddp diverged",
                       "All seeds of dead diverged."});
  EXPECT_EQ(advice_.arm, "");
  made_.runs_of("ddp")[4]->state = std::string("failed");
  expect("undecided", {"seed 5 failed"});
  made_.arm("all-reduce", "all-reduce", 2, kUsual, 1500);
  expect("best", {"all-reduce is the best choice"});
}

TEST_F(AdviceOf, CollapsedSeedsCarryNoVerdict) {
  made_.arm("single", "single", 1, {0.6, 0.6, 0.6}, 1000);
  made_.arm("ddp", "ddp", 2, {0.6, 0.6, 0.6}, 1800);
  expect("best", {"ddp is the best choice"});
  for (MadeRun& run : made_.runs) run.record.eval->confusion = {{600, 0}, {400, 0}};
  expect("undecided", {"seeds 1, 2 and 3 of single collapsed"});
  for (MadeRun* run : made_.runs_of("ddp")) run->record.eval->confusion.clear();
  expect("undecided", {"seeds 1, 2 and 3 of single collapsed"});
  for (MadeRun* run : made_.runs_of("single")) run->record.eval->confusion.clear();
  made_.runs_of("ddp")[1]->record.eval->confusion = {{600, 0}, {400, 0}};
  expect("undecided", {"seed 2 collapsed: the seeds that went well do not speak for those"});
}

TEST_F(AdviceOf, ABusyArmIsNotCalledSlow) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, kUsual, 900);
  expect("none", {"None of these beats one worker"});
  for (MadeRun* run : made_.runs_of("ddp")) run->record.outside_load = 2;
  expect("undecided", {"the machine was busy while ddp ran"});
  for (MadeRun* run : made_.runs_of("ddp")) {
    run->record.outside_load = 0.1;
    run->other_version = true;
  }
  expect("undecided", {"does not count"});
}

TEST_F(AdviceOf, WhereBothWereBusyTheBaselinesLoadIsTheReason) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, kUsual, 1300);
  for (MadeRun& run : made_.runs) run.record.outside_load = 2;
  expect("undecided", {"but the machine was busy while single ran"});
}

TEST_F(AdviceOf, ABusyArmIsNoSlowerRival) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, kUsual, 1800);
  made_.arm("all-reduce", "all-reduce", 2, kUsual, 1600);
  expect("best", {"ddp is the best choice"});
  for (MadeRun* run : made_.runs_of("all-reduce")) run->record.outside_load = 1;
  expect("undecided", {"a machine that was busy while all-reduce ran"});
}

TEST_F(AdviceOf, OfEquallyFastOnesTheBetterIsBest) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("ddp", "ddp", 2, shifted(0, 0.003), 1800);
  made_.arm("all-reduce", "all-reduce", 2, shifted(0, 0.002), 1795);
  const double noise[] = {0.98, 1.03, 0.99, 1.02, 1.0};
  for (MadeRun* run : made_.runs_of("ddp")) run->record.examples_per_s *= noise[run->seed - 1];
  expect("undecided", {"lie too close"});
  for (MadeRun* run : made_.runs_of("all-reduce")) run->record.eval->measures["accuracy"] += 0.05;
  expect("best", {"all-reduce is the best choice here", "worse than all-reduce: ddp"});
}

TEST_F(AdviceOf, OneOfManyThatLooksBetterIsNotCalledBetter) {
  made_.arm("single", "single", 1, kUsual, 1000);
  made_.arm("lucky", "ddp", 2, shifted(0.002, 0.0015), 900);
  expect("best", {"lucky is the best choice here for quality"});
  for (int i = 0; i < 19; ++i) {
    const std::string name = "arm" + std::to_string(i);
    made_.arm(name, "ddp", 2, shifted(0, 0.004), 900);
    for (MadeRun* run : made_.runs_of(name)) run->settings["optim.x"] = std::to_string(i);
  }
  expect("none", {"not beyond what chance does among 20 arms: lucky"});
  EXPECT_TRUE(arm_named(made_.analysed(), "lucky").difference->decided) << "the table keeps its interval";
}

TEST_F(AdviceOf, SeedsThatWouldTellAreThoseOfTheQuestion) {
  // A mean of nearly 0 would take thousands of seeds to be told from 0, but few to be told from a point.
  made_.arm("single", "single", 1, {0.80, 0.81, 0.79}, 1000);
  made_.arm("ddp", "ddp", 2, {0.80 + 0.0103, 0.81 - 0.0097, 0.79 + 0.0003}, 1800);
  expect("undecided", {"whether it loses quality is open", "about 7 seeds more would tell"});
}

TEST_F(AdviceOf, EachTaskHasItsOwnMeasure) {
  for (const char* task : {"rte", "squad"}) {
    made_.arm(std::string(task) + " single", "single", 1, kUsual, 1000);
    made_.arm(std::string(task) + " ddp", "ddp", 2, shifted(0, 0.003), 1800);
  }
  for (MadeRun& run : made_.runs) {
    const bool squad = run.name.starts_with("squad");
    run.settings["task.name"] = std::string(squad ? "squad" : "rte");
    if (squad)
      run.record.eval->measures = {{"exact_match", 70.0}, {"f1", 80 + static_cast<double>(run.seed)}};
  }
  expect("best", {"rte ddp is the best choice", "Problem 2: squad ddp is the best choice"});
  const Results results = made_.analysed();
  EXPECT_EQ(arm_named(results, "squad ddp").measure.name, "f1");
  EXPECT_EQ(arm_named(results, "rte ddp").measure.name, "accuracy");
  EXPECT_NEAR(arm_named(results, "squad ddp").quality.mean, 83, 1e-9);
}

TEST_F(AdviceOf, AnArmThatIsWorseAndPerhapsFasterIsTold) {
  made_.arm("single", "single", 1, {0.80, 0.81, 0.79}, 1000);
  made_.arm("ddp", "ddp", 2, {0.750, 0.762, 0.741}, 1200);
  made_.runs_of("ddp")[1]->record.examples_per_s = 800;
  expect("none", {"ddp is worse (difference −4.90 ±", "undecided in 3 seeds"});
}

}  // namespace
}  // namespace syncopate::report
