#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "syncopate/nn/gpt/gpt.h"
#include "tests/golden/golden_run.h"
#include "tests/golden/golden_support.h"

// What tools/export_reference.py wrote down of a plain PyTorch GPT-2 in double precision.
namespace syncopate::test {
namespace {

constexpr double kGptLossTolerance = 2e-6;

class GoldenGpt : public testing::Test {
 protected:
  GoldenGpt() : run_("gpt", {"input_ids", "attention_mask", "labels"}) {
    config_ = nn::parse_gpt_config(run_.config(), "the golden file");
  }

  std::unique_ptr<nn::Gpt> model(bool plain = false, bool causal = true) const {
    auto made = std::make_unique<nn::Gpt>(config_);
    run_.set_parameters(*made);
    made->set_plain(plain);
    made->set_causal(causal);
    return made;
  }

  double loss_error(nn::Gpt& trained, optim::OptimizerOptions options = {.weight_decay = 0.1}) const {
    trained.set_mode({.training = true, .noise_key = 0});
    return run_.loss_error(trained, options, 1e-3);
  }

  GoldenRun run_;
  nn::GptConfig config_;
};

TEST_F(GoldenGpt, LogitsAndEveryGradient) {
  ASSERT_EQ(run_.batches.size(), 10u);
  for (const bool plain : {false, true}) {
    for (const bool training : {false, true}) {
      const auto made = model(plain);
      EXPECT_LT(worst_of_largest(made->forward(run_.batches[0]), run_.read("logits")), 1e-5);
      made->set_mode({.training = training, .noise_key = 0});
      for (const auto& [name, gradient] : gradients(*made, run_.batches[0])) {
        const at::Tensor right = run_.read("gradient." + name);
        EXPECT_LT(worst_of_largest(gradient, right), 2e-5) << name << " plain " << plain;
      }
    }
  }
}

TEST_F(GoldenGpt, TenLosses) {
  EXPECT_LT(loss_error(*model()), kGptLossTolerance);
  EXPECT_LT(loss_error(*model(true)), kGptLossTolerance);
}

TEST_F(GoldenGpt, FoilsOfTheModelMiss) {
  EXPECT_GT(loss_error(*model(false, false)), 1e-2) << "every position sees every other";
  const nn::GptConfig right = config_;
  config_.activation = nn::Activation::kGelu;
  EXPECT_GT(loss_error(*model()), 10 * kGptLossTolerance);
  config_ = right;
  config_.layer_norm_eps = 1e-2;
  EXPECT_GT(loss_error(*model()), 10 * kGptLossTolerance);
  config_ = right;
  for (auto& batch : run_.batches) batch.fields["labels"].masked_fill_(batch.at("labels").lt(0), 0);
  EXPECT_GT(loss_error(*model()), 1e-2) << "padding is predicted too";
}

TEST_F(GoldenGpt, OtherOptimizersMiss) {
  EXPECT_GT(loss_error(*model(), {.weight_decay = 0}), 10 * kGptLossTolerance);
  EXPECT_GT(loss_error(*model(), {.weight_decay = 0.1, .beta2 = 0.99}), 10 * kGptLossTolerance);
  EXPECT_GT(loss_error(*model(), {.kind = "lamb", .weight_decay = 0.1}), 10 * kGptLossTolerance);
}

}  // namespace
}  // namespace syncopate::test
