// Every check of fairness against an arm that cheats; the honest arm beside it is the foil.
#include <gtest/gtest.h>

#include "syncopate/report/words.h"
#include "tests/report/made_sweep.h"

namespace syncopate::report {
namespace {

/// A baseline, an honest arm, and one that a test makes cheat.
class Checks : public ::testing::Test {
 protected:
  Checks() {
    made_.arm("single", "single", 1, {0.80, 0.81, 0.79}, 1000);
    made_.arm("honest", "ddp", 2, {0.80, 0.81, 0.79}, 1800);
    made_.arm("cheat", "ddp", 2, {0.80, 0.81, 0.79}, 1800);
    for (MadeRun* run : made_.runs_of("cheat")) run->settings["optim.clip"] = std::string("2");
  }

  template <typename Change>
  void each(const Change& change) {
    for (MadeRun* run : made_.runs_of("cheat")) change(*run);
  }

  /// The check that the cheat must fail, and no other arm.
  void caught_by(const std::string& code, const std::string& words) {
    const Results results = made_.analysed();
    const ArmResult& cheat = arm_named(results, "cheat");
    EXPECT_FALSE(check_of(cheat, code).ok) << check_of(cheat, code).text;
    EXPECT_NE(check_of(cheat, code).text.find(words), std::string::npos) << check_of(cheat, code).text;
    EXPECT_TRUE(cheat.excluded);
    EXPECT_FALSE(cheat.pareto) << "left out of the front";
    EXPECT_NE(results.advice.arm, cheat.id);
    for (const char* name : {"single", "honest"}) {
      const ArmResult& other = arm_named(results, name);
      EXPECT_FALSE(other.excluded) << name;
      for (const Check& check : other.checks) EXPECT_TRUE(check.ok) << name << ": " << check.text;
    }
  }

  MadeSweep made_;
};

TEST_F(Checks, HonestArmsPass) {
  const Results results = made_.analysed();
  EXPECT_EQ(results.baseline, "a-single");
  for (const ArmResult& arm : results.arms) {
    EXPECT_EQ(arm.checks.size(), 10u);
    EXPECT_FALSE(arm.excluded);
    EXPECT_EQ(flag_text(arm, "busy"), "");
  }
}

TEST_F(Checks, FewerExamples) {
  each([](MadeRun& run) { run.record.examples = 1600; });
  caught_by("examples", "1,600");
}

TEST_F(Checks, ARestOfABatchIsNoCheat) {
  each([](MadeRun& run) { run.record.examples -= 32; });
  EXPECT_FALSE(arm_named(made_.analysed(), "cheat").excluded);
  each([](MadeRun& run) { run.record.examples -= 1; });
  EXPECT_TRUE(arm_named(made_.analysed(), "cheat").excluded);
}

TEST_F(Checks, ARunThatEndedByTheClockIsToldApart) {
  each([](MadeRun& run) {
    run.record.examples = 1600;
    run.record.steps = 50;
    run.record.ended = std::string("time limit");
    run.settings["train.time_limit"] = std::string("5");
  });
  caught_by("examples", "do not have the same limit");
  EXPECT_NE(flag_text(arm_named(made_.analysed(), "cheat"), "ended-early"), "");
  for (MadeRun* run : made_.runs_of("single")) run->settings["train.time_limit"] = std::string("4");
  EXPECT_TRUE(arm_named(made_.analysed(), "cheat").excluded) << "another limit";
  for (MadeRun* run : made_.runs_of("single")) run->settings["train.time_limit"] = std::string("5");
  const Results results = made_.analysed();
  const ArmResult& arm = arm_named(results, "cheat");
  EXPECT_FALSE(arm.excluded);
  EXPECT_TRUE(check_of(arm, "examples").differs_by_nature);
  EXPECT_NE(flag_text(arm, "ended-early").find("seeds 1, 2 and 3"), std::string::npos);
  EXPECT_EQ(flag_text(arm_named(results, "honest"), "ended-early"), "");
}

TEST_F(Checks, AnotherStart) {
  made_.runs_of("cheat")[1]->record.start_hash = std::string("another");
  caught_by("start", "seed 2");
}

TEST_F(Checks, AnotherStartOfAnotherPhaseIsFlagged) {
  each([](MadeRun& run) {
    run.record.start_hash = std::string("another");
    run.record.init_from = std::string("runs/run9/final");
  });
  caught_by("start", "starts from runs/run9/final");
  EXPECT_NE(flag_text(arm_named(made_.analysed(), "cheat"), "other-start"), "");
  made_.arm("phase", "single", 1, {0.5}, 1000);
  made_.runs.back().kind = std::string("phase");
  ASSERT_EQ(made_.folder_of(made_.runs.size() - 1).filename(), "run9");
  const Results results = made_.analysed();
  EXPECT_TRUE(check_of(arm_named(results, "cheat"), "start").differs_by_nature);
  EXPECT_NE(flag_text(arm_named(results, "cheat"), "other-start"), "");
  EXPECT_EQ(flag_text(arm_named(results, "honest"), "other-start"), "");
  EXPECT_FALSE(arm_named(results, "cheat").excluded);
}

TEST_F(Checks, AnotherTestSet) {
  each([](MadeRun& run) { run.record.test_hash = std::string("another"); });
  caught_by("evaluation", "not tested on the same examples");
}

TEST_F(Checks, AVocabularyOfEachSeedIsNoOtherTestSet) {
  for (MadeRun& run : made_.runs) run.record.test_hash = "tokens of seed " + std::to_string(run.seed);
  const Results results = made_.analysed();
  for (const ArmResult& arm : results.arms) EXPECT_TRUE(check_of(arm, "evaluation").ok) << arm.name;
}

TEST_F(Checks, FewerTestExamples) {
  each([](MadeRun& run) { run.record.eval->examples = 500; });
  caught_by("evaluation", "500");
}

TEST_F(Checks, OtherData) {
  made_.runs_of("cheat")[0]->record.data_hash = std::string("another");
  caught_by("data", "seed 1");
}

TEST_F(Checks, AnotherMachine) {
  made_.runs_of("cheat")[2]->record.cpu = std::string("a faster processor");
  caught_by("machine", "a faster processor");
}

TEST_F(Checks, AnotherNameOfTheSameMachineIsFlagged) {
  each([](MadeRun& run) { run.record.provenance.host = std::string("container-2"); });
  const Results results = made_.analysed();
  EXPECT_FALSE(arm_named(results, "cheat").excluded);
  EXPECT_NE(flag_text(arm_named(results, "cheat"), "other-host"), "");
  EXPECT_EQ(flag_text(arm_named(results, "honest"), "other-host"), "");
}

TEST_F(Checks, MoreThreads) {
  each([](MadeRun& run) {
    run.record.threads = 2;
    run.settings["compute.threads"] = std::string("2");
  });
  caught_by("threads", "2 per worker");
}

TEST_F(Checks, ThreadsThatMakeAsManyCoresAreFair) {
  for (MadeRun* run : made_.runs_of("single")) run->record.threads = 2;
  const Results results = made_.analysed();
  const Check& check = check_of(arm_named(results, "honest"), "threads");
  EXPECT_TRUE(check.ok && check.differs_by_nature) << check.text;
}

TEST_F(Checks, ALargerBatch) {
  each([](MadeRun& run) {
    run.record.global_batch = 128;
    run.record.steps = 25;
    run.losses.resize(25);
  });
  caught_by("batch", "128");
  EXPECT_NE(flag_text(arm_named(made_.analysed(), "cheat"), "other-updates"), "");
}

TEST_F(Checks, ALargerBatchThatIsTheSubject) {
  each([](MadeRun& run) {
    run.record.global_batch = 128;
    run.record.steps = 25;
    run.losses.resize(25);
  });
  made_.sweep["differs"] = {"batch"};
  const Results results = made_.analysed();
  EXPECT_FALSE(arm_named(results, "cheat").excluded);
  EXPECT_NE(flag_text(arm_named(results, "cheat"), "other-batch"), "") << "said all the same";
}

TEST_F(Checks, ALargerBatchWithAControlIsComparedWithThat) {
  const auto large = [](MadeRun& run) {
    run.record.global_batch = 128;
    run.record.steps = 25;
    run.losses.resize(25);
  };
  each(large);
  made_.arm("control", "single", 1, {0.70, 0.71, 0.69}, 1000);
  for (MadeRun* run : made_.runs_of("control")) {
    large(*run);
    run->kind = std::string("control");
    run->control_of = std::string("a-cheat");
  }
  const Results results = made_.analysed();
  const ArmResult& arm = arm_named(results, "cheat");
  EXPECT_FALSE(arm.excluded);
  ASSERT_TRUE(arm.difference);
  EXPECT_EQ(arm.difference->against, "a-control");
  EXPECT_NEAR(arm.difference->mean, 0.10, 1e-9);
  EXPECT_EQ(arm_named(results, "honest").difference->against, "a-single");
  EXPECT_EQ(arm_named(results, "control").family, "control");
  EXPECT_FALSE(arm_named(results, "control").pareto);
}

TEST_F(Checks, AsynchronousUpdatesDifferByNature) {
  each([](MadeRun& run) {
    run.record.strategy = std::string("hogwild");
    run.record.global_batch = 16;
    run.record.steps = 200;
  });
  const Results results = made_.analysed();
  const ArmResult& arm = arm_named(results, "cheat");
  EXPECT_FALSE(arm.excluded);
  EXPECT_TRUE(check_of(arm, "batch").differs_by_nature);
  EXPECT_TRUE(check_of(arm, "updates").differs_by_nature);
  EXPECT_NE(flag_text(arm, "other-updates").find("200 updates"), std::string::npos);
}

TEST_F(Checks, TrainedOnNothing) {
  each([](MadeRun& run) {
    run.record.steps = 0;
    run.record.examples = 0;
    run.losses.clear();
  });
  caught_by("trained", "nothing");
}

TEST_F(Checks, ALossThatDidNotFall) {
  each([](MadeRun& run) { run.losses.assign(100, 3.0); });
  caught_by("trained", "did not fall");
}

TEST_F(Checks, ABaselineThatTrainedOnNothingIsNotTheBaseline) {
  for (MadeRun* run : made_.runs_of("single")) run->record.steps = run->record.examples = 0;
  const Results results = made_.analysed();
  EXPECT_EQ(results.baseline, "a-honest");
  EXPECT_TRUE(arm_named(results, "single").excluded);
  EXPECT_FALSE(arm_named(results, "honest").excluded);
}

TEST_F(Checks, ABusyMachineFlagsTheTimingAndNotTheQuality) {
  made_.runs_of("cheat")[1]->record.outside_load = 1.5;
  const Results results = made_.analysed();
  EXPECT_NE(flag_text(arm_named(results, "cheat"), "busy").find("seed 2"), std::string::npos);
  EXPECT_FALSE(arm_named(results, "cheat").excluded);
  EXPECT_EQ(flag_text(arm_named(results, "honest"), "busy"), "");
}

TEST_F(Checks, TimingOfRunsSideBySideOrOfAnotherVersionIsFlagged) {
  made_.runs_of("cheat")[0]->alone = false;
  made_.runs_of("cheat")[2]->other_version = true;
  const Results results = made_.analysed();
  EXPECT_NE(flag_text(arm_named(results, "cheat"), "side-by-side").find("seed 1"), std::string::npos);
  EXPECT_NE(flag_text(arm_named(results, "cheat"), "other-version").find("seed 3"), std::string::npos);
  for (const char* code : {"side-by-side", "other-version"})
    EXPECT_EQ(flag_text(arm_named(results, "honest"), code), "");
}

/// Sets a run's answers: so many of each of two classes are right, the rest of the truth is taken for the
/// other.
void answer(MadeRun& run, int64_t right_a, int64_t right_b) {
  run.record.eval->confusion = {{right_a, 600 - right_a}, {400 - right_b, right_b}};
  run.record.eval->measures["accuracy"] = static_cast<double>(right_a + right_b) / 1000;
}

TEST_F(Checks, ASeedThatGivesOneAnswerCollapsed) {
  for (MadeRun& run : made_.runs) answer(run, 500, 300);
  answer(*made_.runs_of("cheat")[1], 600, 0);
  const Results results = made_.analysed();
  EXPECT_NE(flag_text(arm_named(results, "cheat"), "collapsed").find("seed 2"), std::string::npos);
  EXPECT_FALSE(arm_named(results, "cheat").excluded) << "told, not hidden";
  EXPECT_EQ(flag_text(arm_named(results, "honest"), "collapsed"), "");
  for (const RunResult& run : results.runs) EXPECT_EQ(run.collapsed, run.name == "cheat" && run.seed == 2);
}

TEST_F(Checks, ASeedAtChanceCollapsed) {
  for (MadeRun& run : made_.runs) answer(run, 500, 300);
  answer(*made_.runs_of("cheat")[0], 590, 15);  // 60.5 %, the larger class has 60 %
  EXPECT_NE(flag_text(arm_named(made_.analysed(), "cheat"), "collapsed").find("most frequent class"),
            std::string::npos);
}

TEST_F(Checks, HonestLowScoresAreNoCollapse) {
  for (MadeRun& run : made_.runs) answer(run, 500, 300);
  for (MadeRun* run : made_.runs_of("cheat")) answer(*run, 480, 180);  // 66 %: bad, and far from 60
  EXPECT_EQ(flag_text(arm_named(made_.analysed(), "cheat"), "collapsed"), "");
  // A task that nobody can learn yet: all are near chance, none collapsed.
  for (MadeRun& run : made_.runs) answer(run, 560, 50 + 5 * run.seed);
  for (const ArmResult& arm : made_.analysed().arms) EXPECT_EQ(flag_text(arm, "collapsed"), "");
}

TEST_F(Checks, ASeedFarFromItsOthersCollapsedWhateverTheMeasure) {
  const auto score = [](MadeRun& run, double f1) {
    run.record.eval->measures = {{"exact_match", f1 - 5}, {"f1", f1}};
  };
  for (MadeRun& run : made_.runs) score(run, 80 + 0.5 * static_cast<double>(run.seed));
  score(*made_.runs_of("cheat")[2], 7);
  const Results results = made_.analysed();
  EXPECT_NE(flag_text(arm_named(results, "cheat"), "collapsed").find("far from"), std::string::npos);
  EXPECT_EQ(flag_text(arm_named(results, "honest"), "collapsed"), "");
  score(*made_.runs_of("cheat")[2], 74);
  EXPECT_EQ(flag_text(arm_named(made_.analysed(), "cheat"), "collapsed"), "") << "an unlucky seed is none";
}

TEST_F(Checks, ARateAtTheEdgeOfItsGridIsFlagged) {
  const auto tuning = [](const char* arm, const char* edge) {
    return nlohmann::ordered_json{
        {"arm", arm},
        {"setting", "optim.lr"},
        {"values", {{{"value", 0.001}, {"scores", {0.6, 0.7}}}, {{"value", 0.002}, {"scores", {0.8}}}}},
        {"best", 0.002},
        {"edge", edge == nullptr ? nlohmann::ordered_json() : nlohmann::ordered_json(edge)}};
  };
  made_.sweep["tuning"] = {tuning("a-cheat", "high"), tuning("a-honest", nullptr)};
  const Results results = made_.analysed();
  EXPECT_NE(flag_text(arm_named(results, "cheat"), "rate-at-edge").find("highest"), std::string::npos);
  EXPECT_EQ(flag_text(arm_named(results, "honest"), "rate-at-edge"), "");
  EXPECT_NEAR(arm_named(results, "cheat").tuning->values[0].mean, 0.65, 1e-12);
}

TEST_F(Checks, AnotherStartThatIsTheSubject) {
  each([](MadeRun& run) {
    run.record.start_hash = std::string("another");
    run.record.init_from = std::string("/elsewhere/trained");
  });
  made_.sweep["differs"] = {"start"};
  const Results results = made_.analysed();
  EXPECT_FALSE(arm_named(results, "cheat").excluded);
  EXPECT_NE(flag_text(arm_named(results, "cheat"), "other-start"), "") << "said all the same";
}

TEST_F(Checks, HalfTheDataOfATinyRun) {
  for (MadeRun& run : made_.runs) {
    run.record.global_batch = 2048;
    run.record.steps = 2;
    run.record.examples = 4096;
  }
  EXPECT_FALSE(arm_named(made_.analysed(), "cheat").excluded) << "foil";
  each([](MadeRun& run) {
    run.record.steps = 1;
    run.record.examples = 2048;
  });
  caught_by("examples", "2,048");
  EXPECT_FALSE(check_of(arm_named(made_.analysed(), "cheat"), "updates").ok) << "one of two is no slack";
}

TEST_F(Checks, ARestThatPassesIsToldAsItIs) {
  each([](MadeRun& run) { run.record.examples -= 32; });
  const Results results = made_.analysed();
  EXPECT_EQ(check_of(arm_named(results, "cheat"), "examples").text,
            "consumed 3,168 examples in seed 1, single consumed 3,200: less than a batch and 2 % apart");
  EXPECT_EQ(check_of(arm_named(results, "honest"), "examples").text, "3,200 examples, as single");
}

TEST_F(Checks, LocalUpdatesDifferBySettingOnly) {
  each([](MadeRun& run) {
    run.record.strategy = std::string("local-sgd");
    run.record.global_batch = 256;
    run.record.steps = 12;
    run.losses.resize(12);
  });
  caught_by("batch", "256");
}

TEST_F(Checks, FreeWorkersDifferByTheirNumberAndNoMore) {
  each([](MadeRun& run) {
    run.record.strategy = std::string("hogwild");
    run.record.global_batch = 4;  // two workers share 32: 16 would be theirs
    run.record.steps = 800;
  });
  caught_by("batch", "4 examples");
  EXPECT_FALSE(check_of(arm_named(made_.analysed(), "cheat"), "updates").ok);
}

TEST_F(Checks, AnotherModelOfARunAsItsResult) {
  each([](MadeRun& run) { run.record.keep = std::string("best"); });
  caught_by("selection", "the best model, that of single the last");
}

TEST_F(Checks, AnotherPrecisionIsToldUnlessItIsTheSubject) {
  each([](MadeRun& run) { run.record.precision = std::string("bf16"); });
  const Results results = made_.analysed();
  EXPECT_EQ(flag_text(arm_named(results, "cheat"), "other-precision"), "computes in bf16, single in fp32");
  EXPECT_EQ(flag_text(arm_named(results, "honest"), "other-precision"), "");
  made_.sweep["axes"] = {"compute.precision"};
  EXPECT_EQ(flag_text(arm_named(made_.analysed(), "cheat"), "other-precision"), "");
}

TEST_F(Checks, ArmsThatWereNotTunedAreTold) {
  made_.sweep["tuning"] = {nlohmann::ordered_json{{"arm", "a-cheat"},
                                                  {"setting", "optim.lr"},
                                                  {"values", {{{"value", 0.001}, {"scores", {0.6}}}}},
                                                  {"best", 0.001},
                                                  {"edge", nullptr}}};
  const Results results = made_.analysed();
  EXPECT_NE(flag_text(arm_named(results, "honest"), "not-tuned"), "");
  EXPECT_EQ(flag_text(arm_named(results, "cheat"), "not-tuned"), "");
}

TEST_F(Checks, ThreadsThatNobodyRecordedAreNotKnown) {
  EXPECT_TRUE(check_of(arm_named(made_.analysed(), "cheat"), "threads").known) << "foil";
  each([](MadeRun& run) { run.record.threads = 0; });
  const Results results = made_.analysed();
  EXPECT_FALSE(check_of(arm_named(results, "cheat"), "threads").known);
  EXPECT_FALSE(arm_named(results, "cheat").excluded);
}

TEST_F(Checks, AnArmThatIsLeftOutIsNobodysBase) {
  made_.sweep["baseline"] = "honest";
  EXPECT_EQ(arm_named(made_.analysed(), "cheat").speed_against, "a-single") << "foil";
  for (MadeRun* run : made_.runs_of("single")) run->record.cpu = std::string("an old processor");
  const Results results = made_.analysed();
  EXPECT_TRUE(arm_named(results, "single").excluded);
  EXPECT_EQ(arm_named(results, "cheat").speed_against, "a-honest");
  EXPECT_NEAR(arm_named(results, "cheat").speedup.mean, 1, 1e-9);
  EXPECT_FALSE(arm_named(results, "single").speedup.known()) << "another machine's speed";
}

TEST_F(Checks, ABusyMachineIsToldByTheSeedsThatItIsOf) {
  made_.runs_of("cheat")[1]->record.outside_load = 1.5;
  EXPECT_NE(flag_text(arm_named(made_.analysed(), "cheat"), "busy").find("1.5 cores"), std::string::npos);
  const auto load_notes = [&] {
    int count = 0;
    for (const Note& note : made_.analysed().notes) count += note.code == "load" && !note.warning ? 1 : 0;
    return count;
  };
  EXPECT_EQ(load_notes(), 0);
  each([](MadeRun& run) { run.record.outside_load = record::kNan; });
  EXPECT_EQ(load_notes(), 1);
}

TEST_F(Checks, TimingThatDoesNotCountIsNeitherSlowerNorOnTheFront) {
  each([](MadeRun& run) { run.record.examples_per_s /= 3; });
  EXPECT_NE(flag_text(arm_named(made_.analysed(), "cheat"), "slower"), "") << "foil";
  each([](MadeRun& run) { run.record.outside_load = 2; });
  EXPECT_EQ(flag_text(arm_named(made_.analysed(), "cheat"), "slower"), "");
  each([](MadeRun& run) {
    run.record.outside_load = 0.1;
    run.record.examples_per_s *= 9;
  });
  EXPECT_TRUE(arm_named(made_.analysed(), "cheat").pareto) << "foil";
  each([](MadeRun& run) { run.alone = false; });
  const Results results = made_.analysed();
  EXPECT_FALSE(arm_named(results, "cheat").pareto);
  EXPECT_TRUE(arm_named(results, "honest").pareto);
}

TEST_F(Checks, SlowerNeedsAsLargeAStepAsFaster) {
  MadeSweep made;
  made.arm("single", "single", 1, {0.8}, 1000);
  made.arm("near", "ddp", 2, {0.8}, 997);
  made.arm("far", "all-reduce", 2, {0.8}, 880);
  const Results results = made.analysed();
  EXPECT_EQ(flag_text(arm_named(results, "near"), "slower"), "");
  EXPECT_NE(flag_text(arm_named(results, "far"), "slower"), "");
}

TEST_F(Checks, NearlyOneAnswerIsACollapse) {
  for (MadeRun& run : made_.runs) answer(run, 450, 250);
  answer(*made_.runs_of("cheat")[1], 595, 12);  // 983 of 1000 answers are the first class
  EXPECT_NE(flag_text(arm_named(made_.analysed(), "cheat"), "collapsed").find("the same class"),
            std::string::npos);
  answer(*made_.runs_of("cheat")[1], 560, 140);
  EXPECT_EQ(flag_text(arm_named(made_.analysed(), "cheat"), "collapsed"), "");
}

TEST_F(Checks, AWorkerThatRunsFreeHasAWholeUpdatesBatch) {
  each([](MadeRun& run) {
    run.record.strategy = std::string("hogwild");
    run.record.global_batch = 16;
    run.record.steps = 200;
  });
  for (MadeRun* run : made_.runs_of("honest")) run->settings["train.accumulate"] = std::string("2");
  const Results results = made_.analysed();
  EXPECT_EQ(arm_named(results, "cheat").worker_batch, 16);
  EXPECT_EQ(arm_named(results, "honest").worker_share, 16);
  EXPECT_EQ(arm_named(results, "honest").worker_batch, 8);
  EXPECT_EQ(arm_named(results, "single").worker_batch, 32);
}

TEST_F(Checks, ATestSetOfEachSeedIsComparedSeedBySeed) {
  for (MadeRun& run : made_.runs) run.record.test_hash = "test of seed " + std::to_string(run.seed);
  for (const ArmResult& arm : made_.analysed().arms) EXPECT_FALSE(arm.excluded) << arm.name;
  made_.runs_of("cheat")[2]->record.test_hash = std::string("test of seed 1");
  caught_by("evaluation", "not tested on the same examples as single");
}

TEST_F(Checks, WhatACheckSaysIsNotSaidTwice) {
  each([](MadeRun& run) { run.record.global_batch = 64; });
  const Results results = made_.analysed();
  size_t told = 0;
  for (const Remark& remark : remarks_of(results))
    told += remark.text.find("64 examples") != std::string::npos;
  EXPECT_EQ(told, 1u);
}

}  // namespace
}  // namespace syncopate::report
