#include "syncopate/nn/example_noise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

// libtorch's own dropout, as a user's module calls it.
namespace syncopate::nn {
namespace {

using Ids = std::vector<int64_t>;

at::Tensor dropped(const at::Tensor& x, uint64_t key, const Ids& ids, int places = 1) {
  const ExampleNoise noise(key, ids, at::kCPU);
  at::Tensor y = x;
  for (int place = 0; place < places; ++place) y = at::dropout(x, 0.4, true);
  return y;
}

TEST(ExampleNoise, FollowsTheExampleIntoAnyBatch) {
  const at::Tensor x = at::ones({3, 5, 40});
  const at::Tensor whole = dropped(x, 1, {7, 3, 9});
  const at::Tensor turned = dropped(at::ones({2, 8, 40}), 1, {9, 7});
  EXPECT_TRUE(at::equal(turned[0].narrow(0, 0, 5), whole[2]));
  EXPECT_TRUE(at::equal(turned[1].narrow(0, 0, 5), whole[0]));
  EXPECT_FALSE(at::equal(turned[0].narrow(0, 0, 5), whole[0]));
  EXPECT_FALSE(at::equal(dropped(x, 2, {7, 3, 9}), whole)) << "another key";
  EXPECT_FALSE(at::equal(dropped(x, 1, {7, 3, 9}, 2), whole)) << "the second dropout of the forward pass";
  EXPECT_NEAR(whole.eq(0).to(at::kDouble).mean().item<double>(), 0.4, 0.08);
  EXPECT_NEAR(whole.max().item<double>(), 1 / 0.6, 1e-5);
}

TEST(ExampleNoise, RowsThatAreSeveralToAnExample) {
  // As attention has them: the heads of an example one after the other.
  const at::Tensor whole = dropped(at::ones({4, 6, 30}), 1, {7, 3});
  EXPECT_TRUE(at::equal(dropped(at::ones({2, 6, 30}), 1, {3}), whole.narrow(0, 2, 2)));
  // Where it does not come out even: by the place in the batch.
  const at::Tensor uneven = dropped(at::ones({5, 30}), 1, {7, 3});
  EXPECT_TRUE(at::equal(dropped(at::ones({5, 30}), 1, {7, 8}), uneven));
  EXPECT_FALSE(at::equal(dropped(at::ones({5, 30}), 1, {8, 3}), uneven));
}

TEST(ExampleNoise, EveryKindOfDropout) {
  const Ids ids{4, 8}, other{8};
  const at::Tensor flat = dropped(at::ones({2}), 1, ids);
  EXPECT_TRUE(at::equal(dropped(at::ones({1}), 1, other), flat.narrow(0, 1, 1)));
  const auto channels = [](const Ids& examples) {
    const ExampleNoise noise(1, examples, at::kCPU);
    return at::feature_dropout(at::ones({static_cast<int64_t>(examples.size()), 50, 3, 3}), 0.4, true);
  };
  const at::Tensor images = channels(ids);
  EXPECT_TRUE(at::equal(channels(other)[0], images[1]));
  EXPECT_TRUE(at::equal(images.amin({2, 3}), images.amax({2, 3}))) << "a channel goes or stays whole";
  EXPECT_FALSE(at::equal(images[0], images[1]));
  at::Tensor in_place = at::ones({2, 60});
  {
    const ExampleNoise noise(1, ids, at::kCPU);
    at::dropout_(in_place, 0.4, true);
  }
  EXPECT_TRUE(at::equal(in_place, dropped(at::ones({2, 60}), 1, ids)));
}

TEST(ExampleNoise, GradientIsThatOfTheElementsKept) {
  const at::Tensor x = at::ones({2, 30}).set_requires_grad(true);
  const at::Tensor y = dropped(x, 1, {4, 8});
  y.sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), y.detach()));
}

TEST(ExampleNoise, OutsideOfItDropoutIsLibtorchs) {
  const at::Tensor x = at::ones({2, 100});
  at::manual_seed(3);
  const at::Tensor first = at::dropout(x, 0.4, true);
  const at::Tensor second = at::dropout(x, 0.4, true);
  at::manual_seed(3);
  const at::Tensor again = at::dropout(x, 0.4, true);
  EXPECT_TRUE(at::equal(first, again));
  EXPECT_FALSE(at::equal(first, second)) << "its stream goes on";
  {
    const ExampleNoise noise(1, Ids{4, 8}, at::kCPU);
    EXPECT_TRUE(at::equal(at::dropout(x, 0.4, false), x)) << "evaluation drops nothing";
    EXPECT_FALSE(at::equal(at::dropout(x, 0.4, true), second));
  }
}

}  // namespace
}  // namespace syncopate::nn
