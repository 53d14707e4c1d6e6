// Models in stages beside whole ones.
#include <gtest/gtest.h>

#include "syncopate/report/files/files.h"
#include "tests/record/records.h"
#include "tests/report/made_sweep.h"

namespace syncopate::report {
namespace {

using Json = nlohmann::ordered_json;

/// Cuts an arm's model into two stages; a field's mean over runs is then not that of one.
void cut(MadeSweep& sweep, const std::string& arm, const std::string& codec) {
  double forward = 8;
  for (MadeRun* run : sweep.runs_of(arm)) {
    run->settings["pipeline.stages"] = std::string("2");
    run->settings["activation.codec"] = codec;
    run->record.pipeline = record::some_pipeline();
    run->record.stages = {record::some_stage(), record::some_stage()};
    run->record.stages[0].forward_ms = forward++;
    run->record.stages[1].bits_forward = record::kNan;
  }
}

TEST(Stages, AreAFamilyOfTheirOwnAndCountReplicas) {
  MadeSweep sweep;
  sweep.arm("single", "single", 1, {0.80, 0.81}, 1000);
  sweep.arm("ddp", "ddp", 4, {0.80, 0.81}, 3000);
  sweep.arm("cut", "ddp", 4, {0.80, 0.81}, 2000);
  cut(sweep, "cut", "ac-sgd");
  const Results results = sweep.analysed();
  const ArmResult& staged = arm_named(results, "cut");
  EXPECT_EQ(staged.family, "pipeline");
  EXPECT_EQ(arm_named(results, "ddp").family, "synchronous");
  EXPECT_EQ(staged.workers, 4);
  EXPECT_EQ(staged.replicas(), 2);
  EXPECT_EQ(staged.worker_share, 16) << "two replicas share a batch of 32";
  EXPECT_EQ(arm_named(results, "ddp").worker_share, 8);
  EXPECT_EQ(staged.speed_against, arm_named(results, "single").id);
  EXPECT_NEAR(staged.efficiency, 0.5, 1e-9) << "four workers at twice the speed of one";
  const Json json = to_json(results);
  EXPECT_TRUE(json["arms"][1]["pipeline"].is_null());
  const Json& pipeline = json["arms"][2]["pipeline"];
  EXPECT_EQ(pipeline["activation_codec"], "ac-sgd");
  EXPECT_EQ(pipeline["stages"][0]["forward_ms"], 8.5) << "a mean over runs";
  EXPECT_EQ(pipeline["stages"][1]["forward_ms"], record::some_stage().forward_ms);
  EXPECT_TRUE(pipeline["stages"][1]["bits_forward"].is_null());
  const std::string csv = csv_text(results);
  EXPECT_NE(csv.find(",stages,activation_codec,bubble,"), std::string::npos) << csv.substr(0, 300);
}

TEST(Stages, AreMeasuredAgainstOnePipelineWhereNoWorkerIsAlone) {
  MadeSweep sweep;
  sweep.arm("plain", "single", 2, {0.80, 0.81}, 1000);
  sweep.arm("coded", "single", 2, {0.80, 0.81}, 3500);
  sweep.arm("both", "ddp", 4, {0.80, 0.81}, 1800);
  sweep.arm("whole", "ddp", 2, {0.80, 0.81}, 1600);
  for (const char* arm : {"plain", "coded", "both"})
    cut(sweep, arm, arm == std::string("coded") ? "ac-sgd" : "none");
  const Results results = sweep.analysed();
  const std::string one = arm_named(results, "plain").id;
  for (const char* arm : {"coded", "both"}) EXPECT_EQ(arm_named(results, arm).speed_against, one);
  EXPECT_NEAR(arm_named(results, "coded").speedup.mean, 3.5, 1e-6);
  EXPECT_NEAR(arm_named(results, "both").efficiency, 0.9, 1e-6) << "two replicas at 1.8 times the speed";
  for (const char* arm : {"coded", "whole"})
    EXPECT_FALSE(arm_named(results, arm).has_flag("superlinear")) << "a pipeline has to wait for itself";
}

TEST(Stages, AreNamedSoThatNobodyTakesThemForWholeModels) {
  MadeSweep sweep;
  sweep.planned = false;
  sweep.arm("whole", "ddp", 4, {0.80}, 3000);
  sweep.arm("cut", "ddp", 4, {0.80}, 2000);
  sweep.arm("coded", "ddp", 4, {0.80}, 2500);
  cut(sweep, "cut", "none");
  cut(sweep, "coded", "ac-sgd");
  std::vector<std::string> names;
  for (const ArmResult& arm : sweep.analysed().arms) names.push_back(arm.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"ddp", "ddp, 2 stages", "ddp, 2 stages, ac-sgd"}));
}

}  // namespace
}  // namespace syncopate::report
