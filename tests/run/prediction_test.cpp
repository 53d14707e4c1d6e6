#include "syncopate/run/prediction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <system_error>

namespace syncopate::run {
namespace {

class RunPrediction : public testing::Test {
 protected:
  RunPrediction() {
    spec_.strategy.name = std::string("ddp");
    spec_.comm.workers = 2;
    spec_.train.global_batch = 16;
    spec_.complete();
    const network::Link link{.latency_ms = 5, .gbit = 1};
    placement_ = {network::Topology("two",
                                    {{.name = std::string("a"), .region = std::string("r")},
                                     {.name = std::string("b"), .region = std::string("r")}},
                                    std::vector<network::Link>(4, link)),
                  {0, 1}};
    measured_.steps = 10;
    measured_.cores = 2;
    measured_.threads = 1;
    measured_.forward_ms = 10;
    measured_.backward_ms = 20;
    measured_.optimizer_ms = 2;
    measured_.compute_ms = 33;
    measured_.bytes_sent_per_step = 1e6;
    model_.parameters = {{.name = std::string("w"), .shape = {500, 500}}};
  }

  std::optional<record::PredictionRecord> predict() {
    return predict_run(spec_, placement_, measured_, model_, [] { return sim::LocalCosts{}; });
  }

  spec::RunSpec spec_;
  Placement placement_;
  record::RunRecord measured_;
  ModelShape model_;
};

TEST_F(RunPrediction, IsFromTheRunsComputeAndSaysNothingAboutBytes) {
  const auto step = predict();
  ASSERT_TRUE(step);
  EXPECT_NEAR(step->compute_ms, 33, 1e-6);
  EXPECT_GT(step->exchange_ms, 20);  // four latencies at least
  EXPECT_TRUE(std::isnan(step->bytes_sent_per_step));
  EXPECT_EQ(step->from, "this run's own compute and embedding rows");
  spec_.compute.threads = 2;  // what was asked for is in what was measured
  measured_.threads = 2;
  EXPECT_EQ(predict()->ms, step->ms);
}

TEST_F(RunPrediction, CountsASlowWorkerOnce) {
  const double even = predict()->compute_ms;
  spec_.comm.slow = std::string("0:3");
  measured_.backward_ms += 60;  // as rank 0 counts its sleep
  measured_.compute_ms += 60;
  EXPECT_NEAR(predict()->compute_ms, even + 60, 1e-6);
  spec_.comm.slow = std::string("1:3");  // foil: rank 0's passes are its own
  EXPECT_NEAR(predict()->compute_ms, even + 60, 1e-6);
  EXPECT_GT(predict()->ms, even + 120);
}

TEST_F(RunPrediction, IsNeverWorthARun) {
  const auto fails = [&](const auto& error) {
    return predict_run(spec_, placement_, measured_, model_, [&]() -> sim::LocalCosts { throw error; });
  };
  EXPECT_FALSE(fails(std::system_error(std::make_error_code(std::errc::too_many_files_open))));
  EXPECT_FALSE(fails(std::runtime_error("a library's sentence\nand its stack")));
  EXPECT_TRUE(predict());
}

TEST_F(RunPrediction, OfStagesTakesWhatTheyCostAndSent) {
  spec_.pipeline.stages = 2;
  spec_.pipeline.micro_batches = 4;
  spec_.optim.clip = 0;
  const std::vector<ModelShape> shapes{model_, model_};
  measured_.stages.resize(2);
  for (record::StageRecord& stage : measured_.stages) {
    stage.forward_ms = 4 * 10;
    stage.backward_ms = 4 * 20;
    stage.optimizer_ms = 1;
  }
  measured_.stages[0].bytes_forward = measured_.stages[1].bytes_backward = 4e5;
  const auto of = [&] {
    return predict_run(spec_, placement_, measured_, shapes, [] { return sim::LocalCosts{}; });
  };
  const auto step = of();
  ASSERT_TRUE(step);
  EXPECT_GT(step->ms, 5 * 30) << "four micro-batches through two stages";
  EXPECT_LT(step->ms, 5 * 30 + 50);
  EXPECT_NEAR(step->compute_ms, 4 * 30 + 1, 0.1);
  measured_.stages[1].backward_ms *= 2;
  EXPECT_GT(of()->ms, step->ms + 60);
  measured_.stages[1].backward_ms /= 2;
  measured_.stages[0].bytes_forward *= 300;  // more than compute hides
  EXPECT_GT(of()->ms, step->ms + 50);
  // Of 8 bits in the mean, most visits had 4; of 30, most were first ones.
  spec_.activation.codec = std::string("ac-sgd");
  measured_.stages[0].bits_forward = 8;
  const double later = of()->ms;
  measured_.stages[0].bits_forward = 30;
  EXPECT_GT(of()->ms, later + 50);
  measured_.stages.clear();
  EXPECT_FALSE(of()) << "nobody measured";
}

}  // namespace
}  // namespace syncopate::run
