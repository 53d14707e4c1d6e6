// Gradients that overflow in fp16: the step is left out, on every rank alike.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "syncopate/parallel/make.h"
#include "tests/contract/ranks.h"

namespace syncopate::train {
namespace {

class Weights : public nn::Model {
 public:
  Weights() : weight_(at::arange(1, 9, at::kFloat).set_requires_grad(true)) {}
  using nn::Model::parameters;
  std::vector<tensor::NamedTensor> parameters(nn::LayerRange) const override { return {{"w", weight_}}; }
  void set_mode(nn::Mode) override {}
  int depth() const override { return 1; }
  at::Tensor forward(at::Tensor, const tensor::Batch&, nn::LayerRange) override { return weight_; }
  tensor::Loss loss(const at::Tensor& output, const tensor::Batch&) const override {
    return {output.sum(), 1};
  }

 private:
  at::Tensor weight_;
};

struct Left {
  at::Tensor values;
  double scale = 0, norm = 0;
  int64_t skipped = 0, steps = 0;
};

/// One exchange and update per entry of `steps`: what a rank's gradient is, before the scale. `clip` 0: off.
template <typename Gradient>
Left run(int ranks, const std::string& strategy_name, int steps, double start, double clip,
         Gradient gradient) {
  std::vector<Left> left(static_cast<size_t>(ranks));
  test::run_ranks(ranks, [&](comm::Group& group) {
    Weights model;
    tensor::FlatParams params(model.parameters());
    const auto optimizer = optim::make_optimizer({.kind = "sgd"}, params);
    optim::LossScale scale(std::max(1.0, start), 2, 2);
    parallel::Replica replica{.model = model,
                              .params = params,
                              .optimizer = *optimizer,
                              .clip = clip,
                              .loss_scale = start > 0 ? &scale : nullptr};
    const auto strategy = parallel::make_strategy({.name = strategy_name}, group).strategy;
    strategy->start(replica);
    parallel::Update last;
    for (int step = 0; step < steps; ++step) {
      params.zero_grads();
      const double factor = start > 0 ? scale.value() : 1;
      params.grads.narrow(0, 0, 8).copy_(gradient(step, group.rank()) * factor);
      last = strategy->step(replica, {.step = step, .lr = 0.1, .count = 4});
    }
    left[static_cast<size_t>(group.rank())] = {.values = params.values.clone(),
                                               .scale = scale.value(),
                                               .norm = last.gradient_norm,
                                               .skipped = scale.skipped(),
                                               .steps = optimizer->steps_done()};
  });
  for (const Left& each : left) {
    EXPECT_TRUE(at::equal(each.values, left[0].values)) << "ranks agree";
    EXPECT_EQ(each.scale, left[0].scale);
    EXPECT_EQ(each.skipped, left[0].skipped);
  }
  return left[0];
}

at::Tensor finite(int step, int rank) {
  return at::arange(8, at::kFloat) * 0.25 + static_cast<double>(step) - 0.5 * rank;
}

TEST(HalfPrecision, OverflowOnOneRankSkipsTheStepOnAll) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    const auto overflowing = [&](int step, int rank) {
      at::Tensor gradient = finite(step, rank);
      if (rank == 1) gradient[3] = bad;
      return gradient;
    };
    for (const char* strategy : {"all-reduce", "gather-scatter"}) {
      const Left left = run(2, strategy, 1, 1024, 0, overflowing);
      EXPECT_TRUE(at::equal(left.values.narrow(0, 0, 8), at::arange(1, 9, at::kFloat))) << "unchanged";
      EXPECT_EQ(left.scale, 512);
      EXPECT_EQ(left.skipped, 1);
      EXPECT_EQ(left.steps, 0) << "the optimizer counts steps taken";
      EXPECT_EQ(left.norm, 0) << "a norm that is no number would stop the run";
    }
  }
  const Left foil = run(2, "all-reduce", 1, 1024, 0, finite);
  EXPECT_FALSE(at::equal(foil.values.narrow(0, 0, 8), at::arange(1, 9, at::kFloat)));
  EXPECT_EQ(foil.scale, 1024);
  EXPECT_EQ(foil.skipped, 0);
}

TEST(HalfPrecision, GradientsAreUnscaledBeforeClipping) {
  for (const double clip : {0.0, 0.5}) {
    const Left plain = run(2, "all-reduce", 3, 0, clip, finite);
    const Left scaled = run(2, "all-reduce", 3, 1024, clip, finite);
    EXPECT_TRUE(at::equal(plain.values, scaled.values)) << "powers of two leave the bits alone";
    EXPECT_EQ(scaled.scale, 2048) << "doubled after two good steps";
    const Left foil = run(2, "all-reduce", 3, 0, clip,
                          [](int step, int rank) { return finite(step, rank) * (step == 1 ? -1 : 1); });
    EXPECT_FALSE(at::equal(plain.values, foil.values));
  }
}

TEST(HalfPrecision, OverflowAtTheLowestScaleIsDivergence) {
  const auto broken = [](int, int) { return at::full({8}, std::numeric_limits<double>::quiet_NaN()); };
  const Left low = run(2, "all-reduce", 1, 1, 0, broken), high = run(2, "all-reduce", 1, 4, 0, broken);
  EXPECT_FALSE(std::isfinite(low.norm)) << "the trainer ends the run by it";
  EXPECT_EQ(low.skipped, 0);
  EXPECT_TRUE(std::isfinite(high.norm));
  EXPECT_EQ(high.skipped, 1);
  EXPECT_TRUE(at::equal(low.values, high.values)) << "neither touches the parameters";
}

TEST(HalfPrecision, SkippedStepChangesNothing) {
  const auto second_overflows = [](int step, int rank) {
    at::Tensor gradient = finite(step == 2 ? 1 : step, rank);
    if (step == 1) gradient[0] = -std::numeric_limits<float>::infinity();
    return gradient;
  };
  const Left with = run(3, "all-reduce", 3, 1024, 0, second_overflows);
  const Left without = run(3, "all-reduce", 2, 1024, 0, finite);
  EXPECT_TRUE(at::equal(with.values, without.values));
  EXPECT_EQ(with.skipped, 1);
  EXPECT_EQ(with.steps, 2);
}

}  // namespace
}  // namespace syncopate::train
