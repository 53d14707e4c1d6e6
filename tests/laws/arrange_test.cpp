#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/laws/rig.h"
#include "tests/support/support.h"

// Texts of a step are spread over workers and micro-batches by length: the same batch, the same gradient.
namespace syncopate::test {
namespace {

Rig arranged_rig(const std::string& strategy, int workers) {
  Rig rig;
  rig.strategy.name = strategy;
  rig.workers = workers;
  rig.dropout = 0.1;
  rig.steps = 20;
  rig.arrange = true;
  return rig;
}

TEST(Arranged, TrainsAsInOrderUpToRounding) {
  for (const auto& [strategy, workers] : {std::pair{"ddp", 2}, {"all-reduce", 3}, {"single", 1}}) {
    Rig arranged = arranged_rig(strategy, workers);
    arranged.accumulate = 2;
    arranged.optim.name =
        std::string("sgd");  // parameters show gradients; AdamW would enlarge their rounding
    arranged.optim.lr = 0.1;
    Rig in_order = arranged;
    in_order.arrange = false;
    const Trace by_length = train(arranged), plain = train(in_order);
    EXPECT_LT(difference(by_length.losses, plain.losses), 1e-5) << strategy;
    EXPECT_NE(by_length.losses, plain.losses) << "the same bits: was anything arranged?";
    const auto apart = [&](const Trace& other) {
      return (by_length.parameters[0] - other.parameters[0]).abs().max().item<double>();
    };
    EXPECT_LT(apart(plain), 1e-5) << strategy;
    in_order.noise_by_rank = true;  // the foil drops other elements
    EXPECT_GT(apart(train(in_order)), 1e-3) << strategy;
  }
}

TEST(Arranged, WorkersOfTheirOwnRhythmKeepTheirExamples) {
  Rig arranged = arranged_rig("local-sgd", 2), in_order = arranged;
  in_order.arrange = false;
  const auto same = [](const Trace& a, const Trace& b) { return a.own_losses == b.own_losses; };
  EXPECT_TRUE(same(train(arranged), train(in_order)));
  arranged.strategy.name = in_order.strategy.name = std::string("ddp");
  EXPECT_FALSE(same(train(arranged), train(in_order))) << "the foil: workers that keep in step";
}

TEST(Arranged, ResumesBitForBit) {
  const TempDir folder;
  Rig straight = arranged_rig("ddp", 3);
  straight.accumulate = 2;
  auto [first, second, before, after, joined] =
      stopped_and_resumed(straight, folder / "checkpoint.safetensors", 9);
  EXPECT_EQ(joined, train(straight).losses);
  train(first);
  second.arrange = false;  // the foil rounds otherwise
  EXPECT_NE(train(second).losses, after.losses);
}

TEST(Arranged, BalancedSharesAreSharesOfTheTokens) {
  Rig rig = arranged_rig("ddp", 2);
  rig.global_batch = 24;
  rig.steps = 40;
  rig.seconds_per_example = {1, 2};  // of a token, where texts are arranged
  const Trace trace = train(rig);
  EXPECT_EQ(trace.shares, (std::vector<int64_t>{16, 8}));
  Rig equal = rig;
  equal.seconds_per_example.clear();
  EXPECT_LT(difference(trace.losses, train(equal).losses), 1e-5);
  rig.seconds_per_example = {1, 1};
  EXPECT_EQ(train(rig).shares, (std::vector<int64_t>{12, 12}));
}

}  // namespace
}  // namespace syncopate::test
