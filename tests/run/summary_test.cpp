#include "syncopate/run/records/summary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/record/records.h"

namespace syncopate::run {
namespace {

TEST(RunSummary, SaysQualityTimeTrafficAndWhereTheModelIs) {
  record::RunRecord run = record::some_run();
  run.worker_evals[1].measures["accuracy"] = 0.81;
  EXPECT_EQ(summary_of(run),
            (std::vector<std::string>{
                "done: 84 updates in 0:04",
                "quality: test loss 0.6667 · accuracy 85.00 % · macro_f1 81.23 % · 20 examples",
                "time: 41.5 ms per update (compute 30.2, exchange 8.1, data 2.8) · 241 examples/s",
                "noise: gradient noise scale of 250 examples, at 16 a step",
                "workers' own models after step 84: accuracy 81.00 % to 85.00 %", "sent: 4.57 kB per update",
                "model: runs/this one/model", "evaluate: syncopate evaluate --model 'runs/this one'"}));
  run.updates.clear();
  run.workers = 1;
  run.eval.reset();
  run.noise_scale = record::kNan;
  run.worker_evals.clear();
  run.run_dir = "runs/x";
  EXPECT_EQ(summary_of(run),
            (std::vector<std::string>{
                "done: 84 steps in 0:04",
                "time: 41.5 ms per step (compute 30.2, exchange 8.1, data 2.8) · 241 examples/s",
                "model: runs/x/model", "evaluate: syncopate evaluate --model runs/x"}));
}

TEST(RunSummary, SaysWhichStageIsSlowestAndWhatIsIdle) {
  record::RunRecord run = record::some_run();
  run.updates.clear();
  const auto without = summary_of(run);
  run.stages = {record::some_stage(), record::some_stage()};
  run.stages[0].forward_ms = 10.5;
  run.stages[0].bubble = 0.38;
  const auto lines = summary_of(run);
  EXPECT_EQ(lines.size(), without.size() + 2);
  EXPECT_EQ(
      std::count(
          lines.begin(), lines.end(),
          "stages: of 0 to 1, stage 0 is the slowest with 31.0 ms of work in a step of 50.0 (forward 10.5, "
          "backward 16.2, coding 1.8, update 2.5)"),
      1);
  EXPECT_EQ(
      std::count(
          lines.begin(), lines.end(),
          "idle: a stage computes nothing in 40 % of a step; 16 % is waiting for other stages, 20 % for "
          "replicas and the step's end"),
      1);
}

TEST(RunSummary, SaysWhatAPredictionIsFrom) {
  record::RunRecord run = record::some_run();
  run.updates.clear();
  run.predicted = record::PredictionRecord{.ms = 45.65, .from = std::string("this run's own compute")};
  const auto lines = summary_of(run);
  EXPECT_EQ(
      std::count(lines.begin(), lines.end(),
                 "predicted from this run's own compute: 45.6 ms per step on this network, measured 41.5 "
                 "(error +10 %)"),
      1);
}

}  // namespace
}  // namespace syncopate::run
