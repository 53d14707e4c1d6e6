#include "syncopate/optim/schedule.h"

#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/optim/loss_scale.h"

namespace syncopate::optim {
namespace {

TEST(Schedule, StepDropsAtItsMilestones) {
  const Schedule usual({.kind = "step", .lr = 1, .warmup = 0}, 100);
  EXPECT_DOUBLE_EQ(usual.lr(0), 1);
  EXPECT_DOUBLE_EQ(usual.lr(49), 1);
  EXPECT_DOUBLE_EQ(usual.lr(50), 0.1);
  EXPECT_DOUBLE_EQ(usual.lr(74), 0.1);
  EXPECT_NEAR(usual.lr(75), 0.01, 1e-15);
  EXPECT_NEAR(usual.lr(1000), 0.01, 1e-15);
  const Schedule other({.kind = "step", .lr = 2, .warmup = 0.1, .gamma = 0.5, .milestones = " 30, 0.9"}, 100);
  EXPECT_DOUBLE_EQ(other.lr(4), 1);  // the warm-up
  EXPECT_DOUBLE_EQ(other.lr(29), 2);
  EXPECT_DOUBLE_EQ(other.lr(30), 1);
  EXPECT_DOUBLE_EQ(other.lr(90), 0.5);
}

TEST(Schedule, CyclicIsATriangle) {
  const Schedule cold({.kind = "cyclic", .lr = 1, .warmup = 0, .cycle = 20}, 100);
  EXPECT_DOUBLE_EQ(cold.lr(0), 0.1);
  EXPECT_DOUBLE_EQ(cold.lr(5), 0.55);
  EXPECT_DOUBLE_EQ(cold.lr(10), 1);
  EXPECT_DOUBLE_EQ(cold.lr(15), 0.55);
  EXPECT_NEAR(cold.lr(20), 0.1, 1e-12);
  EXPECT_NEAR(cold.lr(70), 1, 1e-12);
  const Schedule warm({.kind = "cyclic", .lr = 1, .warmup = 0.1, .cycle = 0.2, .cycle_ratio = 4}, 100);
  EXPECT_DOUBLE_EQ(warm.lr(9), 1);
  EXPECT_DOUBLE_EQ(warm.lr(10), 1) << "it goes on where the warm-up ended";
  EXPECT_DOUBLE_EQ(warm.lr(20), 0.25);
  EXPECT_NEAR(warm.lr(30), 1, 1e-12);
}

TEST(Schedule, PolynomialEndsAtTheFinalShare) {
  const Schedule square({.kind = "polynomial", .lr = 1, .warmup = 0}, 100);
  EXPECT_DOUBLE_EQ(square.lr(50), 0.25);
  EXPECT_DOUBLE_EQ(square.lr(100), 0);
  const Schedule cube({.kind = "polynomial", .lr = 2, .warmup = 20, .power = 3, .final_share = 0.1}, 100);
  EXPECT_DOUBLE_EQ(cube.lr(20), 2);
  EXPECT_NEAR(cube.lr(60), 2 * (0.1 + 0.9 * 0.125), 1e-12);
  EXPECT_NEAR(cube.lr(100), 0.2, 1e-12);
  EXPECT_NEAR(cube.lr(500), 0.2, 1e-12);
}

TEST(Schedule, LearningRateScalesWithTheBatch) {
  const auto peak = [](const char* scaling, double batch) {
    return Schedule({.lr = 0.1, .scaling = scaling, .base_batch = 256, .batch = batch}, 10).peak();
  };
  EXPECT_DOUBLE_EQ(peak("none", 1024), 0.1);
  EXPECT_DOUBLE_EQ(peak("linear", 1024), 0.4);
  EXPECT_DOUBLE_EQ(peak("sqrt", 1024), 0.2);
  EXPECT_DOUBLE_EQ(peak("linear", 64), 0.025);
  const Schedule warm({.lr = 1, .warmup = 4, .scaling = "linear", .base_batch = 1, .batch = 8}, 10);
  EXPECT_DOUBLE_EQ(warm.lr(0), 2) << "the warm-up rises to the scaled peak";
  EXPECT_THROW(peak("linear", 0), ConfigError);
  EXPECT_THROW(peak("liner", 10), ConfigError);
}

TEST(Schedule, RejectsInvalidOptions) {
  EXPECT_THROW(Schedule({.kind = "step", .milestones = "0.5,half"}, 10), ConfigError);
  EXPECT_THROW(Schedule({.kind = "step", .milestones = "0.75,0.5"}, 10), ConfigError);
  EXPECT_THROW(Schedule({.kind = "step", .gamma = 0}, 10), ConfigError);
  EXPECT_THROW(Schedule({.kind = "cyclic", .cycle = 0}, 10), ConfigError);
  EXPECT_THROW(Schedule({.kind = "cyclic", .cycle_ratio = 0.5}, 10), ConfigError);
  EXPECT_THROW(Schedule({.kind = "polynomial", .power = 0}, 10), ConfigError);
  EXPECT_THROW(Schedule({.kind = "polynomial", .final_share = 2}, 10), ConfigError);
  EXPECT_NO_THROW(Schedule({.kind = "linear", .milestones = "none"}, 10)) << "it has no milestones";
}

TEST(LossScale, HalvesOnOverflowAndGrowsAfterGoodSteps) {
  LossScale scale(8, 2, 3);
  scale.overflowed();
  EXPECT_EQ(scale.value(), 4);
  scale.succeeded();
  scale.succeeded();
  EXPECT_EQ(scale.value(), 4);
  scale.succeeded();
  EXPECT_EQ(scale.value(), 8);
  scale.succeeded();
  scale.succeeded();
  scale.overflowed();  // the count of good steps starts again
  EXPECT_EQ(scale.value(), 4);
  scale.succeeded();
  EXPECT_EQ(scale.value(), 4);
  for (int i = 0; i < 10; ++i) scale.overflowed();
  EXPECT_EQ(scale.value(), 1);
  EXPECT_EQ(scale.skipped(), 12);
  EXPECT_EQ(LossScale().value(), 65536);
}

TEST(LossScale, ResumesFromItsState) {
  LossScale scale(8, 2, 3), resumed(8, 2, 3);
  scale.overflowed();
  scale.succeeded();
  scale.succeeded();
  resumed.restore(scale.state());
  EXPECT_EQ(resumed.skipped(), 1);
  resumed.succeeded();
  EXPECT_EQ(resumed.value(), 8);
  EXPECT_THROW(resumed.restore({.value = 0.5}), DataError);
  EXPECT_THROW(resumed.restore({.value = 4, .good_steps = -1}), DataError);
  EXPECT_THROW(LossScale(0.5), ConfigError);
  EXPECT_THROW(LossScale(2, 1), ConfigError);
  EXPECT_THROW(LossScale(2, 2, 0), ConfigError);
}

}  // namespace
}  // namespace syncopate::optim
