// Local SGD and DiLoCo on one number with constant gradients, against histories computed by hand.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "syncopate/base/error.h"
#include "syncopate/library/session.h"
#include "syncopate/parallel/averagers/all_reduce.h"
#include "syncopate/parallel/strategies/diloco.h"
#include "syncopate/parallel/strategies/local_sgd.h"
#include "tests/contract/ranks.h"

namespace syncopate::parallel {
namespace {

/// loss = sum of x * (w + v): the gradient of both is the mean of x. Keeps a running statistic and a count.
class Slope : public nn::Model {
 public:
  using nn::Model::parameters;
  std::vector<tensor::NamedTensor> parameters(nn::LayerRange) const override {
    return {{"w", w_}, {"v", v_}};
  }
  using nn::Model::buffers;
  std::vector<tensor::NamedTensor> buffers(nn::LayerRange) const override {
    return {{"seen", seen_}, {"calls", calls_}};
  }
  void set_mode(nn::Mode) override {}
  int depth() const override { return 1; }
  using nn::Model::forward;
  at::Tensor forward(at::Tensor, const tensor::Batch& batch, nn::LayerRange) override {
    seen_.mul_(0.5).add_(batch.at("x").mean());
    calls_.add_(1);
    return batch.at("x") * (w_ + v_);
  }
  tensor::Loss loss(const at::Tensor& output, const tensor::Batch& batch) const override {
    return {output.sum(), batch.size()};
  }

 private:
  at::Tensor w_ = at::ones({1}).set_requires_grad(true), v_ = at::zeros({1}).set_requires_grad(true);
  at::Tensor seen_ = at::zeros({1}), calls_ = at::zeros({1}, at::kLong);
};

/// One rank's batch in every step: so many examples of this value.
struct Diet {
  double value;
  int64_t count;
};

struct History {
  std::vector<double> w, v, seen;  ///< after every step
  double settled = 0, settled_seen = 0;
  int64_t calls = 0;
};

using Make = std::function<std::unique_ptr<Strategy>(comm::Group&)>;

std::vector<History> run(const std::vector<Diet>& diets, int steps, const Make& make, double lr = 0.1) {
  std::vector<History> histories(diets.size());
  const int ranks = static_cast<int>(diets.size());
  auto groups = comm::open_in_process(ranks, test::kPatience);
  test::run_threads(ranks, [&](int rank) {
    const auto at = static_cast<size_t>(rank);
    World world(std::move(groups[at]));
    Slope model;
    Session session(model, world,
                    {.strategy = std::shared_ptr<Strategy>(make(world.group())),
                     .optimizer = optim::OptimizerOptions{.kind = "sgd", .weight_decay = 0, .momentum = 0}});
    History& history = histories[at];
    for (int step = 0; step < steps; ++step) {
      tensor::Batch batch;
      batch.ids.resize(static_cast<size_t>(diets[at].count));
      batch.fields["x"] = at::full({diets[at].count}, diets[at].value);
      const std::vector<tensor::Batch> micro(diets[at].count > 0 ? 1 : 0, batch);
      session.step(micro, lr);
      history.w.push_back(model.parameters()[0].tensor.item<double>());
      history.v.push_back(model.parameters()[1].tensor.item<double>());
      history.seen.push_back(model.buffers()[0].tensor.item<double>());
    }
    session.finish();
    history.settled = model.parameters()[0].tensor.item<double>();
    history.settled_seen = model.buffers()[0].tensor.item<double>();
    history.calls = model.buffers()[1].tensor.item<int64_t>();
  });
  return histories;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << "step " << i + 1;
}

Make local_sgd(Rounds rounds, bool differences = false) {
  return [=](comm::Group& group) {
    return std::make_unique<LocalSgd>(group, std::make_unique<AllReduce>(group),
                                      LocalSteps::Options{.rounds = rounds}, differences);
  };
}

Make diloco(Rounds rounds, DiLoCo::OuterRound round = {}) {
  return [=](comm::Group& group) {
    return std::make_unique<DiLoCo>(group, std::make_unique<AllReduce>(group),
                                    LocalSteps::Options{.rounds = rounds}, round);
  };
}

const std::vector<Diet> kEven{{1, 4}, {3, 4}};
const std::vector<Diet> kUneven{{1, 6}, {3, 2}};  // the mean example is 1.5

TEST(LocalSgd, AverageIsWeightedByExamples) {
  const auto found = run(kUneven, 5, local_sgd({.every = 2}));
  expect_near(found[0].w, {0.9, 0.7, 0.6, 0.4, 0.3});
  expect_near(found[1].w, {0.7, 0.7, 0.4, 0.4, 0.1});
  for (const History& each : found) EXPECT_NEAR(each.settled, 0.25, 1e-6);
  const auto even = run(kEven, 2, local_sgd({.every = 2}));
  EXPECT_NEAR(even[0].w[1], 0.6, 1e-6) << "a foil: alike, the two weigh alike";
}

TEST(LocalSgd, WorkerWithoutExamplesMakesNoUpdateAndHasNoWeight) {
  const auto found = run({{1, 4}, {0, 0}, {3, 4}}, 4, local_sgd({.every = 2}));
  expect_near(found[0].w, {0.9, 0.6, 0.5, 0.2});
  expect_near(found[1].w, {1.0, 0.6, 0.6, 0.2});
}

TEST(LocalSgd, AveragingDifferencesGivesTheSame) {
  for (const int64_t delay : {0, 1}) {
    const auto plain = run(kUneven, 7, local_sgd({.every = 3, .delay = delay}));
    const auto differences = run(kUneven, 7, local_sgd({.every = 3, .delay = delay}, true));
    for (size_t rank = 0; rank < 2; ++rank) expect_near(differences[rank].w, plain[rank].w);
    EXPECT_NEAR(differences[0].settled, plain[0].settled, 1e-6);
  }
}

TEST(LocalSgd, DelayedAverageKeepsLocalProgress) {
  const auto found = run(kEven, 6, local_sgd({.every = 3, .delay = 2}));
  // After 3 steps 0.7 and 0.1, whose mean 0.4 arrives after 5: each has moved on by its own two steps.
  expect_near(found[0].w, {0.9, 0.8, 0.7, 0.6, 0.4 - 0.2, 0.4 - 0.3});
  expect_near(found[1].w, {0.7, 0.4, 0.1, -0.2, 0.4 - 0.6, 0.4 - 0.9});
  // Of constant gradients the mean model is the same however late means arrive, also while one is under way.
  for (const int64_t delay : {0, 1, 2}) {
    for (const int steps : {3, 4, 5, 6, 7}) {
      const auto late = run(kUneven, steps, local_sgd({.every = 3, .delay = delay}));
      for (const History& each : late) EXPECT_NEAR(each.settled, 1 - 0.15 * steps, 1e-6) << delay;
    }
  }
}

TEST(LocalSgd, BuffersAreAveragedToo) {
  const auto found = run(kUneven, 4, local_sgd({.every = 2}));
  // seen: 1, 1.5 and 3, 4.5 with weights 3/4 and 1/4: 2.25.
  expect_near(found[0].seen, {1, 2.25, 2.125, 0.75 * 2.0625 + 0.25 * 5.0625});
  expect_near(found[1].seen, {3, 2.25, 4.125, 0.75 * 2.0625 + 0.25 * 5.0625});
  EXPECT_EQ(found[0].calls, 4) << "a count has no mean";
  const auto between = run(kUneven, 3, local_sgd({.every = 2}));
  for (const History& each : between) EXPECT_NEAR(each.settled_seen, 0.75 * 2.125 + 0.25 * 4.125, 1e-6);
  const auto late = run(kUneven, 4, local_sgd({.every = 2, .delay = 1}));
  expect_near(late[0].seen, {1, 1.5, 2.25, 2.125});
  expect_near(late[1].seen, {3, 4.5, 2.25, 4.125});
}

TEST(DiLoCo, OuterOptimizerUsesNesterovMomentum) {
  // Two steps of the mean example 1.5 move 0.3 in a round: m = 0.3, 0.57, ...; x -= 0.7 (0.3 + 0.9 m).
  const auto found = run(kUneven, 6, diloco({.every = 2}));
  const double one = 1 - 0.7 * (0.3 + 0.9 * 0.3);
  const double two = one - 0.7 * (0.3 + 0.9 * 0.57);
  const double three = two - 0.7 * (0.3 + 0.9 * (0.9 * 0.57 + 0.3));
  expect_near(found[0].w, {0.9, one, one - 0.1, two, two - 0.1, three});
  expect_near(found[1].w, {0.7, one, one - 0.3, two, two - 0.3, three});
  EXPECT_NEAR(found[0].settled, three, 1e-6) << "after an outer step the outer model";
  const auto between = run(kUneven, 5, diloco({.every = 2}));
  EXPECT_NEAR(between[1].settled, two - 0.15, 1e-6) << "between two the mean of the workers";
}

TEST(DiLoCo, WithoutNesterovMatchesBlockMomentum) {
  const auto found =
      run(kEven, 4, diloco({.every = 2}, {.outer = {.lr = 0.5, .momentum = 0.5, .nesterov = false}}));
  expect_near(found[0].w, {0.9, 1 - 0.5 * 0.4, 0.7, 0.8 - 0.5 * 0.6});
}

TEST(DiLoCo, DelayedResultIsMixedWithLocalParameters) {
  const DiLoCo::OuterRound plain{.outer = {.lr = 1, .momentum = 0}, .mixing = 0};
  const auto taken = run(kEven, 4, diloco({.every = 3, .delay = 1}, plain));
  expect_near(taken[0].w, {0.9, 0.8, 0.7, 0.4});
  DiLoCo::OuterRound half = plain;
  half.mixing = 0.5;
  const auto mixed = run(kEven, 4, diloco({.every = 3, .delay = 1}, half));
  expect_near(mixed[0].w, {0.9, 0.8, 0.7, 0.5 * 0.4 + 0.5 * 0.6});
  expect_near(mixed[1].w, {0.7, 0.4, 0.1, 0.5 * 0.4 + 0.5 * -0.2});
  EXPECT_NEAR(mixed[0].settled, 0.3, 1e-6);
}

TEST(DiLoCo, FragmentsTakeTurns) {
  const DiLoCo::OuterRound plain{.outer = {.lr = 1, .momentum = 0}, .mixing = 0};
  const auto found = run(kEven, 5, diloco({.every = 4, .fragments = 2}, plain));
  // The gradient of v comes first, so it lies first: it is exchanged after 2 steps, w after 4.
  expect_near(found[0].v, {-0.1, -0.4, -0.5, -0.6, -0.7});
  expect_near(found[1].v, {-0.3, -0.4, -0.7, -1.0, -1.3});
  expect_near(found[0].w, {0.9, 0.8, 0.7, 0.2, 0.1});
  EXPECT_NEAR(found[0].settled, 0.0, 1e-6);
}

TEST(Rounds, OneFragmentAtATime) {
  const Rounds rounds{.every = 6, .fragments = 3, .delay = 3};
  rounds.validate();
  std::vector<int> started, landed;
  for (int64_t done = 0; done <= 12; ++done) {
    started.push_back(rounds.starting(done) ? static_cast<int>(*rounds.starting(done)) : -1);
    landed.push_back(rounds.applying(done) ? static_cast<int>(*rounds.applying(done)) : -1);
  }
  EXPECT_EQ(started, (std::vector<int>{-1, -1, 0, -1, 1, -1, 2, -1, 0, -1, 1, -1, 2}));
  EXPECT_EQ(landed, (std::vector<int>{-1, -1, -1, -1, -1, 0, -1, 1, -1, 2, -1, 0, -1}));
  EXPECT_TRUE(rounds.under_way(0, 2));
  EXPECT_TRUE(rounds.under_way(0, 4));
  EXPECT_FALSE(rounds.under_way(0, 5));
  EXPECT_FALSE(rounds.under_way(1, 3));
}

TEST(Rounds, FragmentsCoverTheModelInPartsOfAboutOneSize) {
  std::vector<tensor::NamedTensor> parameters;
  for (const int64_t size : {400, 16, 160, 16, 160, 16, 160, 16}) {
    parameters.push_back({"p", at::zeros({size}).set_requires_grad(true)});
  }
  const tensor::FlatParams params(parameters);
  for (const int64_t count : {1, 2, 3, 8}) {
    const auto fragments = fragments_of(params, count);
    ASSERT_EQ(fragments.size(), static_cast<size_t>(count));
    int64_t end = 0;
    for (const Slice& fragment : fragments) {
      EXPECT_EQ(fragment.begin, end);
      EXPECT_GT(fragment.size(), 0);
      end += fragment.size();
    }
    EXPECT_EQ(end, params.size());
  }
  EXPECT_EQ(fragments_of(params, 2)[0].size(), 528);
  EXPECT_EQ(fragments_of(params, 2)[1].size(), 416);
  EXPECT_THROW(fragments_of(params, 9), ConfigError);
}

TEST(Rounds, RejectsInvalidOptions) {
  const auto group = comm::open_alone();
  const auto refused = [&](const Make& make, const std::string& word) {
    try {
      make(*group);
      ADD_FAILURE() << word << " was accepted";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  refused(local_sgd({.every = 0}), "every must be 1 or more, got 0");
  refused(diloco({.every = 10, .fragments = 3}), "10 is not a multiple of 3");
  refused(diloco({.every = 10, .fragments = 0}), "fragments must be 1 or more");
  refused(diloco({.every = 10, .delay = 10}), "below every (10), got 10");
  refused(diloco({.every = 10, .delay = -1}), "delay");
  refused(diloco({.every = 2}, {.outer = {}, .mixing = 1}), "mixing");
  refused(diloco({.every = 2}, {.outer = {}, .mixing = -0.1}), "mixing");
  refused(diloco({.every = 2}, {.outer = {.momentum = 1}}), "outer_momentum");
  refused(diloco({.every = 2}, {.outer = {.lr = 0}}), "outer_lr");
  EXPECT_THROW(parse_moments("forget"), ConfigError);
}

}  // namespace
}  // namespace syncopate::parallel
