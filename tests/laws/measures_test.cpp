// What is measured of a run beside its losses changes nothing, and is what it says.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/parallel/noise_scale.h"
#include "tests/laws/rig.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

Rig measured_rig(const std::string& strategy) {
  Rig rig;
  rig.strategy.name = strategy;
  rig.strategy.every = 4;
  rig.workers = 2;
  rig.steps = 12;
  rig.optim.lr = 0.01;
  return rig;
}

TEST(Measures, NoiseScaleOfAWorkedCase) {
  // A squared norm of 4 and a trace of 12: over B examples the squared norm is 4 + 12 / B.
  parallel::NoiseScale scale;
  const auto group = comm::open_alone();
  EXPECT_TRUE(std::isnan(scale.estimate(*group)));
  scale.add(10, 2, 5.5, 8);
  EXPECT_DOUBLE_EQ(scale.estimate(*group), 3);
  // Two noisy estimates whose means are those: neither alone gives 3.
  parallel::NoiseScale noisy;
  noisy.add(11, 2, 5.5, 8);
  EXPECT_GT(std::abs(noisy.estimate(*group) - 3), 0.5);
  noisy.add(9, 2, 5.5, 8);
  EXPECT_DOUBLE_EQ(noisy.estimate(*group), 3);
  // One that had all examples, or none, says nothing.
  scale.add(7, 8, 7, 8);
  scale.add(7, 0, 7, 8);
  EXPECT_DOUBLE_EQ(scale.estimate(*group), 3);
}

TEST(Measures, NoiseScaleIsThatOfTheGradientsHoweverTheyTravel) {
  Rig rig = measured_rig("all-reduce");
  rig.noise_scale = true;
  const Trace whole = train(rig);
  EXPECT_GT(whole.noise_scale, 0);
  for (const bool sparse : {false, true}) {  // in buckets, and an embedding's rows packed
    Rig other = rig;
    other.strategy.name = "ddp";
    other.strategy.sparse_rows = sparse;
    const Trace trace = train(other);
    EXPECT_NEAR(trace.noise_scale, whole.noise_scale, 1e-3 * whole.noise_scale);
    EXPECT_EQ(trace.losses, [&] {
      other.noise_scale = false;
      return train(other).losses;
    }()) << "a look changes nothing";
  }
  Rig clipped = rig;  // then the norm of the mean is known already
  clipped.optim.clip = 0;
  const Trace unknown = train(clipped);
  EXPECT_GT(unknown.noise_scale, 0);
  clipped.share = true;  // then the sum is not where the gradients are
  EXPECT_EQ(train(clipped).noise_scale, unknown.noise_scale);
  rig.seed = 4;
  EXPECT_NE(train(rig).noise_scale, whole.noise_scale);
}

TEST(Measures, WorkersOwnModelsAreScoredBeforeTheyAreAveraged) {
  Rig rig = measured_rig("local-sgd");
  rig.worker_evals = true;
  const Trace trace = train(rig);
  ASSERT_EQ(trace.worker_evals.size(), 2U);
  EXPECT_EQ(trace.worker_evals[0].step, 11) << "the twelfth step ends with an average";
  EXPECT_NE(trace.worker_evals[0].loss, trace.worker_evals[1].loss);
  EXPECT_EQ(trace.worker_evals[1].model, "worker 1's own");
  EXPECT_EQ(trace.worker_evals[1].examples, trace.test->examples);
  rig.worker_evals = false;
  const Trace plain = train(rig);
  EXPECT_EQ(plain.losses, trace.losses) << "a look changes nothing";
  EXPECT_TRUE(at::equal(plain.parameters[1], trace.parameters[1]));
  EXPECT_TRUE(plain.worker_evals.empty());
  // One that ends between two averages is scored at its end.
  rig.worker_evals = true;
  rig.steps = 10;
  EXPECT_EQ(train(rig).worker_evals.at(0).step, 10);
}

TEST(Measures, WhatWasSentIsKeptInACheckpoint) {
  const TempDir folder;
  Rig rig = measured_rig("ddp");
  const Trace straight = train(rig);
  const Resumed resumed = stopped_and_resumed(rig, folder / "checkpoint.safetensors", 5);
  ASSERT_TRUE(resumed.after.sent.has_value());
  EXPECT_EQ(resumed.after.sent->carried, straight.sent->carried);
  EXPECT_EQ(resumed.after.bytes_sent, straight.bytes_sent);
  EXPECT_NE(resumed.before.sent->carried, straight.sent->carried);
  EXPECT_EQ((*resumed.after.sent)[comm::Kind::kAllReduce].transfers,
            (*straight.sent)[comm::Kind::kAllReduce].transfers);
}

}  // namespace
}  // namespace syncopate::test
