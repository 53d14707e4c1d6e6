#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/optim/clip.h"
#include "syncopate/optim/optimizer.h"
#include "syncopate/optim/schedule.h"

namespace syncopate::optim {
namespace {

std::vector<tensor::NamedTensor> some_parameters() {
  return {{"weight", at::linspace(-1, 1, 21).view({3, 7}).clone().set_requires_grad(true)},
          {"bias", at::linspace(0.5, 2, 5).clone().set_requires_grad(true)},
          {"table", at::linspace(2, -3, 12).view({4, 3}).clone().set_requires_grad(true)}};
}

/// AdamW as its paper states it, in double, one element at a time.
struct PlainAdamW {
  double lr, decay, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double m = 0, v = 0, x = 0;
  void step(double g, int t) {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    x -= lr * decay * x;
    x -= lr * (m / (1 - std::pow(beta1, t))) / (std::sqrt(v / (1 - std::pow(beta2, t))) + eps);
  }
};

double gradient_at(int64_t i, int t) { return std::sin(0.7 * static_cast<double>(i) + 1.3 * t); }

double worst_difference(double decay_in_reference_on_bias) {
  auto parameters = some_parameters();
  tensor::FlatParams params(parameters);
  const auto optimizer = make_optimizer({.kind = "adamw", .weight_decay = 0.1}, params);
  std::vector<PlainAdamW> plain;
  for (const auto& entry : params.entries()) {
    for (int64_t i = 0; i < entry.size; ++i) {
      PlainAdamW one{.lr = 1e-2, .decay = entry.decay ? 0.1 : decay_in_reference_on_bias};
      one.x = params.values[entry.offset + i].item<double>();
      plain.push_back(one);
    }
  }
  double worst = 0;
  for (int t = 1; t <= 20; ++t) {
    params.zero_grads();
    for (const auto& entry : params.entries()) {
      for (int64_t i = 0; i < entry.size; ++i)
        params.grads[entry.offset + i] = 4 * gradient_at(entry.offset + i, t);
    }
    optimizer->step(params, 1e-2, 0.25);
    size_t k = 0;
    for (const auto& entry : params.entries()) {
      for (int64_t i = 0; i < entry.size; ++i, ++k) {
        plain[k].step(gradient_at(entry.offset + i, t), t);
        worst = std::max(worst, std::abs(plain[k].x - params.values[entry.offset + i].item<double>()));
      }
    }
  }
  return worst;
}

TEST(AdamW, MatchesThePapersFormulaWithoutDecayOnBiases) {
  EXPECT_LT(worst_difference(0), 2e-6);
  EXPECT_GT(worst_difference(0.1), 1e-3) << "the foil decays the bias too";
}

TEST(AdamW, GapsBetweenParametersStayZero) {
  tensor::FlatParams params(some_parameters());
  const auto optimizer = make_optimizer({}, params);
  for (const auto& entry : params.entries()) params.grad_of(entry).fill_(1);
  optimizer->step(params, 0.1, 1);
  EXPECT_GT(params.size(), 21 + 5 + 12);
  for (const auto& entry : params.entries()) params.value_of(entry).zero_();
  EXPECT_EQ(params.values.abs().sum().item<double>(), 0);
}

TEST(AdamW, AnyNumberOfThreadsGivesTheSameBits) {
  const auto values_with = [](int threads) {
    at::set_num_threads(1);  // ATen's own sine depends on where its threads cut
    at::Tensor big = at::linspace(-2, 2, 300001).set_requires_grad(true);
    tensor::FlatParams params({{"big", big}});
    const auto optimizer = make_optimizer({}, params);
    params.grads.copy_(at::sin(params.values * 50));
    at::set_num_threads(threads);
    for (int i = 0; i < 3; ++i) optimizer->step(params, 1e-2, 1 / gradient_norm(params.grads, 1));
    at::set_num_threads(1);
    return params.values.clone();
  };
  EXPECT_TRUE(at::equal(values_with(1), values_with(2)));
}

TEST(Sgd, AddsWeightDecayToTheGradient) {
  tensor::FlatParams params({{"w", at::full({1, 1}, 2.0).set_requires_grad(true)}});
  const auto optimizer = make_optimizer({.kind = "sgd", .weight_decay = 0.1, .momentum = 0.5}, params);
  params.grads.narrow(0, 0, 1).fill_(1);
  optimizer->step(params, 0.1, 1);  // g = 1 + 0.2; x = 2 - 0.12
  EXPECT_NEAR(params.values[0].item<double>(), 1.88, 1e-6);
  optimizer->step(params, 0.1, 1);  // g = 1.188; m = 0.5 * 1.2 + 1.188
  EXPECT_NEAR(params.values[0].item<double>(), 1.88 - 0.1788, 1e-6);
}

TEST(Optimizer, RejectsInvalidOptions) {
  tensor::FlatParams params(some_parameters());
  EXPECT_THROW(make_optimizer({.kind = "adam"}, params), ConfigError);
  EXPECT_THROW(make_optimizer({.beta1 = 1}, params), ConfigError);
  EXPECT_THROW(make_optimizer({.eps = 0}, params), ConfigError);
}

TEST(Schedule, WarmsUpThenDecays) {
  const Schedule linear({.kind = "linear", .lr = 1, .warmup = 0.1}, 100);
  EXPECT_DOUBLE_EQ(linear.lr(0), 0.1);
  EXPECT_DOUBLE_EQ(linear.lr(9), 1);
  EXPECT_DOUBLE_EQ(linear.lr(10), 1);
  EXPECT_DOUBLE_EQ(linear.lr(55), 0.5);
  const Schedule cosine({.kind = "cosine", .lr = 1, .warmup = 20}, 100);
  EXPECT_EQ(cosine.warmup_steps(), 20);
  EXPECT_NEAR(cosine.lr(60), 0.5, 1e-12);
  EXPECT_LT(cosine.lr(99), 1e-3);
  const Schedule constant({.kind = "constant", .lr = 0.3, .warmup = 0}, 10);
  EXPECT_DOUBLE_EQ(constant.lr(0), 0.3);
  EXPECT_DOUBLE_EQ(constant.lr(9), 0.3);
  EXPECT_THROW(Schedule({.kind = "linaer"}, 10), ConfigError);
  EXPECT_THROW(Schedule({.lr = -1}, 10), ConfigError);
}

TEST(Clip, ScalesTheGradientToTheLimit) {
  const at::Tensor flat = at::full({90000}, 2.0f);
  EXPECT_NEAR(gradient_norm(flat, 0.5), 300, 1e-9);
  EXPECT_NEAR(clip_factor(300, 3) * 300, 3, 1e-5);
  EXPECT_DOUBLE_EQ(clip_factor(2, 3), 1);
  EXPECT_DOUBLE_EQ(clip_factor(300, 0), 1);
}

}  // namespace
}  // namespace syncopate::optim
