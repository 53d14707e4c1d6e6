// What is read of a folder, whatever its state.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "syncopate/base/error.h"
#include "tests/report/made_sweep.h"

namespace syncopate::report {
namespace {

namespace fs = std::filesystem;

bool noted(const Results& results, const std::string& words) {
  for (const Note& note : results.notes) {
    if (note.text.find(words) != std::string::npos) return true;
  }
  return false;
}

class Reading : public ::testing::Test {
 protected:
  Reading() {
    made_.arm("single", "single", 1, {0.80, 0.81, 0.79}, 1000);
    made_.arm("ddp", "ddp", 2, {0.80, 0.82, 0.79}, 1900);
  }
  MadeSweep made_;
};

TEST_F(Reading, FiguresOfAnArm) {
  made_.sweep["price"] = {{"worker_hour", 3.6}, {"currency", "EUR"}};
  made_.sweep["link_gbit"] = 1.0;
  for (MadeRun* run : made_.runs_of("ddp")) {
    run->record.collectives = {{.name = "all_reduce", .calls = 1, .bytes = 1e6, .seconds = 0.016}};
    run->record.bytes_by_kind = {{"gradients", 9e5}, {"control", 1e5}};
    run->record.staleness = {{1, 2}, {3}};
  }
  const Results results = made_.analysed();
  const ArmResult& ddp = arm_named(results, "ddp");
  EXPECT_EQ(results.measure.name, "accuracy");
  EXPECT_TRUE(results.measure.percent && results.measure.higher_is_better);
  EXPECT_NEAR(ddp.quality.mean, 0.80333, 1e-5);
  EXPECT_NEAR(ddp.difference->mean, 0.00333, 1e-5);
  EXPECT_EQ(ddp.difference->n, 3);
  EXPECT_NEAR(ddp.speedup.mean, 1.9, 1e-9);
  EXPECT_NEAR(ddp.speedup.sd, 0, 1e-9) << "paired: what seeds add to both falls out";
  EXPECT_NEAR(ddp.efficiency, 0.95, 1e-9);
  EXPECT_EQ(ddp.words, "1.90x as fast as one worker");
  EXPECT_EQ(arm_named(results, "single").words, "what speed is measured against");
  ASSERT_TRUE(ddp.bandwidth);
  EXPECT_NEAR(ddp.bandwidth->algorithm_gbit, 0.5, 1e-9);
  EXPECT_NEAR(ddp.bandwidth->bus_gbit, 0.5, 1e-9) << "2 (n - 1) / n is 1 of two";
  EXPECT_NEAR(ddp.bandwidth->utilisation, 0.5, 1e-9);
  EXPECT_FALSE(arm_named(results, "single").bandwidth);
  EXPECT_NEAR(ddp.bytes.gradients, 9e5, 1e-6);
  EXPECT_NEAR(ddp.bytes.parameters, 0, 1e-6);
  EXPECT_TRUE(std::isnan(arm_named(results, "single").bytes.gradients)) << "not recorded is not 0";
  EXPECT_EQ(ddp.staleness, (std::vector<int64_t>{12, 6}));
  EXPECT_NEAR(ddp.price->value, 2 * ddp.train_seconds.mean * 0.001, 1e-9);
  EXPECT_TRUE(ddp.pareto);
  EXPECT_FALSE(arm_named(results, "single").pareto) << "slower and no better";
}

TEST_F(Reading, TimeToTheTargetAndQualityAtEqualTime) {
  // Single ends after 3.2 s, ddp after 1.684 s; both are scored after every quarter.
  for (MadeRun& run : made_.runs) {
    for (int quarter = 1; quarter <= 4; ++quarter) {
      record::EvalRecord eval;
      eval.step = 25 * quarter;
      eval.examples = 1000;
      eval.measures["accuracy"] = 0.2 * quarter;
      run.evals.push_back(eval);
    }
  }
  made_.sweep["target"] = {{"measure", "accuracy"}, {"value", 0.5}};
  const Results results = made_.analysed();
  const ArmResult &single = arm_named(results, "single"), &ddp = arm_named(results, "ddp");
  EXPECT_NEAR(single.time_to_target->seconds.values[0], 3.2 * 0.625, 1e-6) << "halfway from 0.4 to 0.6";
  EXPECT_NEAR(ddp.time_to_target->seconds.values[0], 3.2 / 1.9 * 0.625, 1e-6);
  EXPECT_EQ(ddp.time_to_target->reached, 3);
  EXPECT_NEAR(ddp.quality_at_time->quality.mean, 0.8, 1e-3);
  EXPECT_NEAR(single.quality_at_time->quality.mean, 0.8 / 1.9, 1e-3);
  EXPECT_TRUE(noted(results, "test split"));
  EXPECT_EQ(results.runs[0].evals.quality.size(), 4u);
  // A target that nobody reached.
  made_.sweep["target"] = {{"measure", "accuracy"}, {"value", 0.9}};
  EXPECT_EQ(arm_named(made_.analysed(), "ddp").time_to_target->reached, 0);
}

TEST_F(Reading, SlowerAndSuperlinearAreSaidInWords) {
  made_.arm("slow", "all-reduce", 2, {0.80, 0.81, 0.79}, 700);
  made_.arm("odd", "ddp", 2, {0.80, 0.81, 0.79}, 2600);
  for (MadeRun* run : made_.runs_of("odd")) {
    run->settings["train.batch_size"] = std::string("64");
    run->record.global_batch = 128;
    run->record.steps = 25;
  }
  made_.sweep["differs"] = {"batch"};
  const Results results = made_.analysed();
  EXPECT_EQ(arm_named(results, "slow").words, "slower than one worker (0.70x)");
  EXPECT_EQ(flag_text(arm_named(results, "slow"), "slower"), "slower than one worker");
  const std::string why = flag_text(arm_named(results, "odd"), "superlinear");
  EXPECT_NE(why.find("compute per example and worker fell by"), std::string::npos) << why;
  EXPECT_NE(why.find("64 examples at a time instead of 32"), std::string::npos) << why;
  EXPECT_NE(why.find("every 128 examples instead of every 32"), std::string::npos) << why;
  EXPECT_EQ(flag_text(arm_named(results, "ddp"), "superlinear"), "");
  EXPECT_EQ(flag_text(arm_named(results, "ddp"), "slower"), "");
}

TEST_F(Reading, ScalingIsStrongAtTheSameBatchAndWeakAtTheSameShare) {
  made_.arm("ddp, 4", "ddp", 4, {0.80, 0.81, 0.79}, 3000);
  made_.arm("ddp, 4, 128", "ddp", 4, {0.80, 0.81, 0.79}, 3600);
  for (MadeRun* run : made_.runs_of("ddp, 4, 128")) {
    run->record.global_batch = 128;
    run->record.steps = 25;
  }
  made_.sweep["differs"] = {"batch"};
  const Results results = made_.analysed();
  ASSERT_EQ(results.strong.size(), 3u);
  EXPECT_EQ(results.strong[0].arm, "a-single");
  EXPECT_NEAR(results.strong[2].speedup, 3.0, 1e-9);
  ASSERT_EQ(results.weak.size(), 2u);
  EXPECT_EQ(results.weak[1].arm, "a-ddp, 4, 128");
}

TEST_F(Reading, DamagedHalfWrittenAndForeignFoldersAreNamed) {
  made_.write();
  test::write_text(made_.folder_of(1) / "result.json", "{\"task\": ");
  test::write_text(made_.folder_of(4) / "steps.jsonl", "{\"step\":1,\"loss\":2}\n");
  fs::remove(made_.folder_of(5) / "DONE");
  const Results results = analyse(made_.path());
  EXPECT_TRUE(noted(results, "run1"));
  EXPECT_TRUE(noted(results, "run4"));
  EXPECT_TRUE(noted(results, "run5"));
  EXPECT_EQ(arm_named(results, "single").quality.n, 2);
  EXPECT_EQ(arm_named(results, "ddp").quality.n, 2) << "a damaged curve leaves the result";
  EXPECT_NE(flag_text(arm_named(results, "single"), "failed"), "");
  EXPECT_EQ(arm_named(results, "ddp").difference->n, 1) << "seed 2 is gone in one, seed 3 in the other";
}

TEST_F(Reading, ADamagedPlanLeavesTheRuns) {
  made_.write();
  test::write_text(made_.path() / "sweep.json", "{\"format\": \"syncopate-sweep-1\"");
  const Results results = analyse(made_.path());
  EXPECT_TRUE(noted(results, "sweep.json could not be read"));
  EXPECT_EQ(results.arms.size(), 2u);
  EXPECT_EQ(arm_named(results, "ddp").quality.n, 3);
}

TEST_F(Reading, AFolderOfRunsIsGroupedBySettings) {
  made_.planned = false;
  made_.arm("other rate", "ddp", 2, {0.7}, 1900);
  made_.runs.back().settings["optim.clip"] = std::string("9");
  made_.write();
  fs::create_directory(made_.path() / "notes");
  const Results results = analyse(made_.path());
  ASSERT_EQ(results.arms.size(), 3u);
  EXPECT_EQ(results.arms[0].name, "single");
  EXPECT_EQ(results.arms[0].runs.size(), 3u);
  EXPECT_EQ(results.arms[1].name, "ddp");
  EXPECT_EQ(results.arms[2].name, "ddp, clip 9");
  EXPECT_TRUE(noted(results, "notes"));
  EXPECT_EQ(results.runs[0].state, "done");
  const Results one = analyse(made_.folder_of(3));
  ASSERT_EQ(one.arms.size(), 1u);
  EXPECT_EQ(one.arms[0].name, "ddp");
  EXPECT_EQ(one.advice.verdict, "nothing");
}

TEST_F(Reading, WhatIsNoComparisonIsASentence) {
  const test::TempDir empty;
  EXPECT_THROW(analyse(empty.path()), DataError);
  EXPECT_THROW(analyse(empty / "none"), DataError);
  for (MadeRun& run : made_.runs) run.state = std::string("planned");
  const Results results = made_.analysed();
  EXPECT_EQ(results.advice.sentence, "No run has finished yet.");
  EXPECT_EQ(results.baseline, "");
}

TEST_F(Reading, ARunThatIsNamedTwiceCountsOnce) {
  made_.write();
  auto sweep = nlohmann::ordered_json::parse(test::read_text(made_.path() / "sweep.json"));
  sweep["runs"].push_back(sweep["runs"][0]);
  test::write_text(made_.path() / "sweep.json", sweep.dump());
  const Results results = analyse(made_.path());
  EXPECT_EQ(arm_named(results, "single").quality.n, 3);
  EXPECT_TRUE(noted(results, "more than once"));
}

TEST_F(Reading, ArmsThatTuningMadeTheSameAreBothShown) {
  made_.write();
  auto sweep = nlohmann::ordered_json::parse(test::read_text(made_.path() / "sweep.json"));
  for (int i = 0; i < 3; ++i) {  // the seeds of single
    auto twin = sweep["runs"][i];
    twin["same_as"] = twin["id"];
    twin["id"] = fmt::format("r{}", sweep["runs"].size());
    twin["arm"] = "a99";
    twin["row"] = twin["name"] = "tuned";
    sweep["runs"].push_back(twin);
  }
  test::write_text(made_.path() / "sweep.json", sweep.dump());
  const Results results = analyse(made_.path());
  EXPECT_EQ(arm_named(results, "single").quality.n, 3);
  EXPECT_EQ(arm_named(results, "tuned").quality.n, 3);
  EXPECT_EQ(arm_named(results, "tuned").quality.mean, arm_named(results, "single").quality.mean);
  EXPECT_FALSE(noted(results, "more than once")) << "ARunThatIsNamedTwiceCountsOnce is the foil";
}

TEST_F(Reading, ARepeatedSeedCountsOnce) {
  made_.planned = false;
  made_.runs.push_back(made_.runs[0]);
  const Results results = made_.analysed();
  EXPECT_EQ(arm_named(results, "single").quality.n, 3);
  EXPECT_TRUE(noted(results, "counted once"));
}

TEST_F(Reading, AReaderReadsWhatIsNew) {
  MadeRun& run = made_.runs[5];
  run.state = std::string("running");
  run.settings["train.steps"] = std::string("200");
  made_.write();
  Reader reader(made_.path());
  EXPECT_TRUE(reader.refresh());
  EXPECT_FALSE(reader.refresh()) << "nothing is new";
  ASSERT_TRUE(reader.results().runs[5].progress);
  EXPECT_EQ(reader.results().runs[5].progress->step, 100);
  EXPECT_EQ(reader.results().runs[5].progress->of, 200);
  EXPECT_GT(reader.results().runs[5].progress->seconds_left, 0);
  EXPECT_EQ(arm_named(reader.results(), "ddp").state, "running");
  {
    std::ofstream file(made_.folder_of(5) / "steps.jsonl", std::ios::app);
    file << R"({"step":101,"loss":1.5,"lr":0,"examples":32,"ms":10,"bytes_sent":5})"
         << "\n"
         << R"({"step":102,"lo)";
  }
  EXPECT_TRUE(reader.refresh());
  EXPECT_EQ(reader.results().runs[5].progress->step, 101) << "an unfinished line is left for later";
  run.state = std::string("done");
  made_.write();
  EXPECT_TRUE(reader.refresh());
  EXPECT_FALSE(reader.results().runs[5].progress);
  EXPECT_EQ(arm_named(reader.results(), "ddp").quality.n, 3);
}

TEST_F(Reading, ARecordThatTheSweepDidNotTakeIsNoResult) {
  made_.write();
  auto sweep = nlohmann::ordered_json::parse(test::read_text(made_.path() / "sweep.json"));
  sweep["runs"][5]["state"] = "planned";
  test::write_text(made_.path() / "sweep.json", sweep.dump());
  const Results results = analyse(made_.path());
  EXPECT_EQ(results.runs[5].state, "planned");
  EXPECT_EQ(arm_named(results, "ddp").quality.n, 2);
}

TEST_F(Reading, ASweepThatNobodyHoldsHasStopped) {
  made_.runs[5].state = std::string("running");
  made_.sweep["state"] = "running";
  EXPECT_EQ(made_.analysed().state, "stopped");
  EXPECT_EQ(made_.analysed().runs[5].state, "stopped");
  test::write_text(made_.path() / "LOCK", "");
  EXPECT_EQ(made_.analysed().state, "running");
  EXPECT_EQ(made_.analysed().runs[5].state, "running");
}

TEST_F(Reading, CurvesAreThinnedToMeansOfWhatIsLeftOut) {
  made_.runs[0].losses.clear();
  for (int step = 0; step < 1000; ++step) made_.runs[0].losses.push_back(step % 5 == 4 ? 12.0 : 2.0);
  const Results results = made_.analysed();
  const Curve& curve = results.runs[0].curve;
  ASSERT_EQ(curve.loss.size(), 200u);
  for (const double loss : curve.loss) EXPECT_NEAR(loss, 4, 1e-9);
  EXPECT_NEAR(curve.seconds.back(), results.runs[0].train_seconds, 1e-6);
  EXPECT_EQ(curve.examples.back(), 32000);
  EXPECT_EQ(results.runs[1].curve.loss.size(), 100u);
}

TEST_F(Reading, FailedAndDivergedRunsAreFlaggedAndTheRestCounts) {
  made_.runs[3].state = std::string("diverged");
  made_.runs[4].state = std::string("killed");
  made_.runs[4].message = std::string("worker 1 was lost");
  const Results results = made_.analysed();
  const ArmResult& ddp = arm_named(results, "ddp");
  EXPECT_NE(flag_text(ddp, "diverged").find("seed 1"), std::string::npos);
  EXPECT_NE(flag_text(ddp, "failed").find("worker 1 was lost"), std::string::npos);
  EXPECT_EQ(ddp.state, "done");
  EXPECT_EQ(ddp.quality.n, 1);
  EXPECT_NE(flag_text(ddp, "one-seed"), "");
}

TEST_F(Reading, ATimeToTheTargetHasNoMeanWhereSomeSeedsMissedIt) {
  for (MadeRun& run : made_.runs) {
    record::EvalRecord eval;
    eval.step = 50;
    eval.examples = 1000;
    eval.measures["accuracy"] = run.name == "ddp" && run.seed == 3 ? 0.4 : 0.6;
    run.evals.push_back(eval);
  }
  made_.sweep["target"] = {{"measure", "accuracy"}, {"value", 0.5}};
  const Results results = made_.analysed();
  EXPECT_EQ(arm_named(results, "ddp").time_to_target->reached, 2);
  EXPECT_TRUE(std::isnan(arm_named(results, "ddp").time_to_target->seconds.mean));
  EXPECT_TRUE(std::isfinite(arm_named(results, "single").time_to_target->seconds.mean));
  EXPECT_TRUE(noted(results, "Quality at equal time is that of the test split"));
}

TEST_F(Reading, EqualTimeIsThatOfArmsWhoseTimingCounts) {
  made_.arm("together", "all-reduce", 2, {0.80, 0.81, 0.79}, 8000);
  for (MadeRun& run : made_.runs) {
    record::EvalRecord eval;
    eval.step = 10;
    eval.examples = 1000;
    eval.measures["accuracy"] = 0.6;
    run.evals.push_back(eval);
    run.alone = run.name != "together";
  }
  const Results results = made_.analysed();
  EXPECT_FALSE(arm_named(results, "together").quality_at_time);
  EXPECT_NEAR(arm_named(results, "single").quality_at_time->seconds,
              arm_named(results, "ddp").train_seconds.mean, 1e-9);
}

TEST_F(Reading, AnArmThatHasNotBegunHasTheFamilyOfItsPlan) {
  made_.arm("local-sgd", "local-sgd", 2, {0.8}, 1000);
  made_.runs.back().state = std::string("planned");
  made_.write();
  fs::remove_all(made_.folder_of(made_.runs.size() - 1));
  EXPECT_EQ(arm_named(analyse(made_.path()), "local-sgd").family, "local");
}

TEST_F(Reading, WhatIsLeftToTheProgramIsAutoAndNotZero) {
  for (MadeRun& run : made_.runs) {
    run.settings["train.epochs"] = std::string("0");
    run.settings["train.patience"] = std::string("0");
  }
  const Results results = made_.analysed();
  const auto common = [&](const std::string& name) {
    for (const auto& [key, value] : results.common) {
      if (key == name) return value;
    }
    return std::string();
  };
  EXPECT_EQ(common("train.epochs"), "auto");
  EXPECT_EQ(common("train.patience"), "0") << "foil: none is none";
}

TEST_F(Reading, ScalingOfFreeWorkersCountsTheirBatchesTogether) {
  made_.arm("hogwild", "hogwild", 2, {0.80, 0.81, 0.79}, 1700);
  for (MadeRun* run : made_.runs_of("hogwild")) {
    run->record.global_batch = 16;
    run->record.steps = 200;
  }
  const Results results = made_.analysed();
  std::vector<std::string> strong;
  for (const ScalingPoint& point : results.strong) strong.push_back(point.group + ": " + point.arm);
  EXPECT_EQ(strong, (std::vector<std::string>{"ddp: a-single", "ddp: a-ddp", "hogwild: a-single",
                                              "hogwild: a-hogwild"}));
  EXPECT_TRUE(results.weak.empty());
}

}  // namespace
}  // namespace syncopate::report
