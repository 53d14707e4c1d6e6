#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/laws/rig.h"
#include "tests/support/support.h"

// Runs whose workers' shares, rates and ends are decided while they go on.
namespace syncopate::test {
namespace {

using Numbers = std::vector<int64_t>;

Rig balanced_rig(const std::string& strategy, int workers) {
  Rig rig;
  rig.strategy.name = strategy;
  rig.workers = workers;
  rig.optim.lr = 3e-3;
  rig.optim.clip = 0;
  return rig;
}

TEST(Balanced, GradientStaysThatOfTheGlobalMean) {
  for (const std::string strategy : {"ddp", "all-reduce", "gather-scatter"}) {
    const Rig equal = balanced_rig(strategy, 3);
    Rig balanced = equal;
    balanced.seconds_per_example = {1, 2, 4};
    const Trace reference = train(equal), trace = train(balanced);
    EXPECT_EQ(trace.shares, (Numbers{8, 3, 1})) << strategy;
    EXPECT_LT(difference(reference.losses, trace.losses), 1e-6) << strategy;
    EXPECT_NE(reference.losses, trace.losses) << "the same bits: did anything change?";
    for (const at::Tensor& parameters : trace.parameters)
      EXPECT_TRUE(at::equal(parameters, trace.parameters[0]));
    balanced.mean_of_means = true;
    balanced.strategy.overlap = false;  // so that the foil comes before the exchange
    EXPECT_GT(difference(reference.losses, train(balanced).losses), 1e-4) << strategy;
  }
}

TEST(Balanced, ResumesWithTheSharesOfTheCheckpoint) {
  const TempDir folder;
  Rig straight = balanced_rig("ddp", 2);
  straight.dropout = 0.1;
  straight.seconds_per_example = {1, 3};
  straight.balance_every = 40;
  const Trace reference = train(straight);
  ASSERT_EQ(reference.shares, (Numbers{9, 3}));
  auto [first, second, before, after, joined] =
      stopped_and_resumed(straight, folder / "checkpoint.safetensors", 17);
  EXPECT_EQ(joined, reference.losses);
  train(first);
  second.seconds_per_example.clear();  // the foil forgets them, which shows in how sums are rounded
  EXPECT_NE(train(second).losses, after.losses);
}

TEST(Balance, BytesOfTheMeasurementsAreCounted) {
  Rig rig = balanced_rig("all-reduce", 2);
  rig.steps = 8;
  rig.seconds_per_example = {1, 1};
  const Trace trace = train(rig);
  EXPECT_GT(trace.bytes[3], trace.bytes[2]) << "speeds are exchanged after the fourth step";
  EXPECT_EQ(trace.bytes[4], trace.bytes[2]);
  rig.seconds_per_example.clear();
  EXPECT_EQ(train(rig).bytes[3], trace.bytes[2]) << "the foil does not balance";
}

TEST(Control, TimeLimitStopsAllRanksAtTheSameStep) {
  Rig rig = balanced_rig("ddp", 3);
  rig.time_limit = 10;
  rig.steps_per_second = {1.3, 0.2, 5};  // by themselves they would stop after steps 13, 2 and 50
  const Trace trace = train(rig);
  EXPECT_EQ(trace.steps, (Numbers{13, 13, 13}));
  EXPECT_EQ(trace.ended, (std::vector<std::string>(3, "time limit")));
  Rig unlimited = rig;
  unlimited.time_limit = 0;
  const Trace whole = train(unlimited);
  EXPECT_EQ(whole.steps, (Numbers{50, 50, 50}));
  EXPECT_EQ(whole.ended, (std::vector<std::string>(3, "steps")));
}

TEST(Control, TimeLimitStopsAsynchronousWorkers) {
  Rig rig = balanced_rig("hogwild", 2);
  rig.time_limit = 10;
  rig.steps_per_second = {1.3, 0.2};
  const Trace trace = train(rig);
  EXPECT_LT(trace.steps[0], 100);
  EXPECT_EQ(trace.steps[0], trace.steps[1]);
  EXPECT_EQ(trace.ended, (std::vector<std::string>(2, "time limit")));
}

TEST(Control, PlateauCutsTheRateAndStopsAllRanks) {
  Rig rig = balanced_rig("all-reduce", 3);
  rig.optim.schedule = "constant";
  rig.optim.warmup = 0;
  rig.optim.lr = 0.05;  // too much: the test loss soon gets worse
  rig.eval_every = 3;
  const Trace whole = train(rig);
  rig.patience = 3;
  const Trace trace = train(rig);
  EXPECT_LT(trace.steps[0], 50);
  EXPECT_EQ(trace.steps, Numbers(3, trace.steps[0]));
  EXPECT_EQ(trace.ended, (std::vector<std::string>(3, "plateau")));
  EXPECT_EQ(trace.losses, std::vector<double>(whole.losses.begin(), whole.losses.begin() + trace.steps[0]));
  EXPECT_EQ(*std::min_element(whole.rates.begin(), whole.rates.end()), 0.05) << "the foil's rate stays";

  rig.patience = 0;
  rig.plateau_factor = 0.5;
  const Trace cut = train(rig);
  EXPECT_EQ(cut.rates.front(), 0.05);
  EXPECT_LT(cut.rates.back(), 0.05);
  const TempDir folder;
  const Resumed parts = stopped_and_resumed(rig, folder / "checkpoint.safetensors", 29);
  std::vector<double> rates = parts.before.rates;
  rates.insert(rates.end(), parts.after.rates.begin(), parts.after.rates.end());
  EXPECT_EQ(rates, cut.rates);
}

}  // namespace
}  // namespace syncopate::test
