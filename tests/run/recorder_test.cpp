#include "syncopate/run/recorder.h"

#include <gtest/gtest.h>

namespace syncopate::run {
namespace {

std::vector<record::StepRecord> steps_of(const std::vector<std::pair<double, double>>& ms_and_bytes) {
  std::vector<record::StepRecord> steps;
  for (const auto& [ms, bytes] : ms_and_bytes) {
    record::StepRecord step;
    step.ms = ms;
    step.exchange_ms = ms / 4;
    step.bytes_sent = bytes;
    step.examples = 8;
    steps.push_back(step);
  }
  return steps;
}

TEST(Summary, UsesTheMedianWithoutTheFirstStep) {
  record::RunRecord record;
  summarise(steps_of({{900, 5}, {10, 5}, {11, 5}, {60, 5}}), record);
  EXPECT_DOUBLE_EQ(record.ms_per_iteration, 11);
  EXPECT_DOUBLE_EQ(record.exchange_ms, 11.0 / 4);
  record::RunRecord alone;
  summarise(steps_of({{900, 0}, {10, 0}, {11, 0}, {60, 0}}), alone);
  EXPECT_DOUBLE_EQ(alone.ms_per_iteration, 11);
}

TEST(Summary, UsesTheMeanForPeriodicExchanges) {
  record::RunRecord record;
  summarise(steps_of({{900, 0}, {10, 0}, {11, 0}, {60, 5}}), record);
  EXPECT_DOUBLE_EQ(record.ms_per_iteration, 27);
  EXPECT_DOUBLE_EQ(record.exchange_ms, 27.0 / 4);
}

}  // namespace
}  // namespace syncopate::run
