#include "syncopate/run/records/recorder.h"

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

TEST(Summary, TellsPercentilesAndParts) {
  std::vector<record::StepRecord> steps = steps_of({{900, 5}});
  for (int i = 1; i <= 101; ++i) steps.push_back(steps_of({{static_cast<double>(i), 5}}).front());
  for (record::StepRecord& step : steps) {
    step.forward_ms = 0.25 * step.ms;
    step.backward_ms = 0.375 * step.ms;
    step.optimizer_ms = 0.125 * step.ms;
    step.hidden_ms = 2 * step.ms;
  }
  record::RunRecord record;
  summarise(steps, record);
  EXPECT_DOUBLE_EQ(record.ms_p50, 51);
  EXPECT_DOUBLE_EQ(record.ms_p95, 96);
  EXPECT_DOUBLE_EQ(record.forward_ms + record.backward_ms + record.optimizer_ms + record.exchange_ms, 51);
  EXPECT_DOUBLE_EQ(record.hidden_ms, 102) << "no part of the step: several may be hidden behind it";
  // What is not known of every step is not told of their mean.
  steps[7].forward_ms = steps[7].backward_ms = steps[7].optimizer_ms = 0;
  record::RunRecord mixed;
  summarise(steps, mixed);
  EXPECT_EQ(mixed.forward_ms + mixed.backward_ms + mixed.optimizer_ms, 0);
  EXPECT_DOUBLE_EQ(mixed.exchange_ms, record.exchange_ms);
  // Between two steps the percentile lies between them.
  record::RunRecord two;
  summarise(steps_of({{900, 5}, {10, 5}, {20, 5}}), two);
  EXPECT_DOUBLE_EQ(two.ms_p50, 15);
  EXPECT_DOUBLE_EQ(two.ms_p95, 19.5);
}

}  // namespace
}  // namespace syncopate::run
