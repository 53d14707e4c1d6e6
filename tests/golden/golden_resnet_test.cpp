#include <gtest/gtest.h>

#include "syncopate/nn/resnet/resnet.h"
#include "tests/golden/golden_run.h"
#include "tests/golden/golden_support.h"

// What tools/export_reference.py wrote down of a plain PyTorch ResNet-18, narrow, in double precision.
namespace syncopate::test {
namespace {

constexpr double kResNetLossTolerance = 5e-5;  // ten steps of large gradients through norms over few values

class GoldenResNet : public testing::Test {
 protected:
  GoldenResNet() : run_("resnet", {"images", "labels"}) {
    config_ = nn::parse_resnet_config(run_.config(), "the golden file");
  }

  std::unique_ptr<nn::ResNet> model(bool synchronised = false) const {
    auto made = nn::make_resnet(config_, 0);
    run_.set_parameters(*made);
    made->set_mode({.training = true, .noise_key = 0});
    if (synchronised) made->set_sum_over_ranks([](at::Tensor&) {});  // one rank
    return made;
  }

  static optim::OptimizerOptions sgd() {
    return {.kind = "sgd", .weight_decay = 0.01, .momentum = 0.9, .nesterov = true};
  }

  double loss_error(nn::ResNet& trained, const optim::OptimizerOptions& options = sgd()) const {
    return run_.loss_error(trained, options, 0.005);
  }

  GoldenRun run_;
  nn::ResNetConfig config_;
};

TEST_F(GoldenResNet, LogitsAndEveryGradient) {
  ASSERT_EQ(run_.batches.size(), 10u);
  EXPECT_EQ(config_.widths.size(), 4u);
  for (const bool synchronised : {false, true}) {
    for (const bool channels_last : {false, true}) {
      const auto made = model(synchronised);
      made->set_channels_last(channels_last);
      EXPECT_LT(worst_of_largest(made->forward(run_.batches[0]), run_.read("logits")), 1e-5);
      for (const auto& [name, gradient] : gradients(*made, run_.batches[0])) {
        const at::Tensor right = run_.read("gradient." + name);
        EXPECT_LT(worst_of_largest(gradient, right), 5e-5) << name << " synchronised " << synchronised;
      }
    }
  }
}

TEST_F(GoldenResNet, TenLossesAndTheRunningStatistics) {
  for (const bool synchronised : {false, true}) {
    const auto made = model(synchronised);
    EXPECT_LT(loss_error(*made), kResNetLossTolerance);
    for (const auto& [name, value] : made->buffers()) {
      EXPECT_LT(worst_of_largest(value, run_.read("buffer." + name)), 1e-4) << name;
    }
    made->set_mode({});
    EXPECT_LT(worst_of_largest(made->forward(run_.batches[0]), run_.read("evaluated")), 1e-4);
  }
}

TEST_F(GoldenResNet, FoilsMiss) {
  const auto evaluating = model();
  evaluating->set_mode({});
  EXPECT_GT(loss_error(*evaluating), 1e-2) << "norms by the running statistics";
  const auto smooth = model();
  smooth->set_label_smoothing(0.1);
  EXPECT_GT(loss_error(*smooth), 1e-2);
  optim::OptimizerOptions options = sgd();
  options.nesterov = false;
  EXPECT_GT(loss_error(*model(), options), 10 * kResNetLossTolerance);
  options = sgd();
  options.weight_decay = 0;
  EXPECT_GT(loss_error(*model(), options), 10 * kResNetLossTolerance);
}

}  // namespace
}  // namespace syncopate::test
