#include "syncopate/train/metric.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "syncopate/comm/inproc/inproc.h"
#include "tests/contract/ranks.h"

namespace syncopate::train {
namespace {

/// Logits whose order of classes is `order`, best first.
at::Tensor ranking(const std::vector<int64_t>& order) {
  at::Tensor logits = at::zeros({static_cast<int64_t>(order.size())});
  for (size_t i = 0; i < order.size(); ++i) logits[order[i]] = 10.0 - static_cast<double>(i);
  return logits;
}

struct Case {
  int64_t label;
  std::vector<int64_t> order;
};

/// Scores the cases, shared out among so many ranks.
record::EvalRecord score(const ClassificationOptions& options, const std::vector<Case>& cases, int ranks) {
  std::vector<record::EvalRecord> records(static_cast<size_t>(ranks));
  const MakeMetric make = classification(options);
  test::run_ranks(ranks, [&](comm::Group& group) {
    const auto metric = make();
    for (size_t i = 0; i < cases.size(); ++i) {
      if (static_cast<int>(i) % ranks != group.rank()) continue;
      tensor::Batch batch;
      batch.ids = {static_cast<int64_t>(i)};
      batch.fields["labels"] = at::full({1}, cases[i].label, at::kLong);
      metric->add(ranking(cases[i].order).unsqueeze(0), batch);
    }
    metric->conclude(group, records[static_cast<size_t>(group.rank())]);
  });
  for (const auto& each : records) {
    EXPECT_EQ(each.measures, records[0].measures) << "every rank says the same";
    EXPECT_EQ(each.confusion, records[0].confusion);
  }
  return records[0];
}

// Truths and answers of four classes; class 3 neither occurs nor is answered.
const std::vector<Case> kCases{{0, {0, 1, 2, 3}}, {0, {1, 0, 2, 3}}, {0, {0, 2, 1, 3}}, {1, {1, 0, 2, 3}},
                               {1, {2, 0, 3, 1}}, {2, {0, 2, 1, 3}}, {0, {0, 3, 1, 2}}};

class ByRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ByRanks, testing::Values(1, 2, 3));

TEST_P(ByRanks, MacroF1ByHand) {
  const auto record = score({.classes = 4, .top = 0, .parts = {}}, kCases, GetParam());
  // Class 0: 3 right of 4 truths and 4 answers, 3/4. Class 1: 1 of 2 and 2, 1/2. Class 2: 0. Class 3: absent.
  EXPECT_DOUBLE_EQ(record.measures.at("macro_f1"), (0.75 + 0.5 + 0.0) / 3);
  EXPECT_DOUBLE_EQ(record.measures.at("accuracy"), 4.0 / 7);
  EXPECT_EQ(record.confusion,
            (std::vector<std::vector<int64_t>>{{3, 1, 0, 0}, {0, 1, 1, 0}, {1, 0, 0, 0}, {0, 0, 0, 0}}));
  EXPECT_FALSE(record.measures.contains("top5"));
  // A class that never occurs but is answered counts, as 0.
  std::vector<Case> more = kCases;
  more.push_back({2, {3, 2, 1, 0}});
  EXPECT_DOUBLE_EQ(score({.classes = 4, .top = 0, .parts = {}}, more, GetParam()).measures.at("macro_f1"),
                   (0.75 + 0.5 + 0.0 + 0.0) / 4);
}

TEST_P(ByRanks, TopKAccuracyByHand) {
  const auto top = [&](int64_t count) {
    const auto record = score({.classes = 4, .top = count, .parts = {}}, kCases, GetParam());
    return record.measures.at("top" + std::to_string(count));
  };
  EXPECT_DOUBLE_EQ(top(1), 4.0 / 7);
  EXPECT_DOUBLE_EQ(top(2), 6.0 / 7);  // all but the fifth, whose label comes last
  EXPECT_DOUBLE_EQ(top(5), 1) << "of four classes all are among the five best";
}

TEST_P(ByRanks, ScoresPartsSeparately) {
  const auto record =
      score({.classes = 4, .top = 0, .parts = {{"first", 0, 3}, {"last", 3, 7}, {"none", 7, 9}}}, kCases,
            GetParam());
  EXPECT_DOUBLE_EQ(record.measures.at("accuracy_first"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(record.measures.at("accuracy_last"), 2.0 / 4);
  EXPECT_FALSE(record.measures.contains("accuracy_none")) << "nothing was scored";
}

record::EvalRecord words(bool shifted, const at::Tensor& output, const at::Tensor& labels, double loss) {
  const auto alone = comm::open_alone();
  const auto metric = perplexity(shifted)();
  tensor::Batch batch;
  for (int64_t i = 0; i < labels.size(0); ++i) batch.ids.push_back(i);
  batch.fields["labels"] = labels;
  metric->add(output, batch);
  record::EvalRecord record;
  record.loss = loss;
  metric->conclude(*alone, record);
  return record;
}

TEST(Perplexity, IsTheExponentialOfTheMeanLoss) {
  // Four words asked for, the third not right.
  const at::Tensor output =
      at::stack({ranking({2, 0, 1}), ranking({0, 1, 2}), ranking({1, 0, 2}), ranking({1, 2, 0})});
  const auto record = words(false, output, at::tensor(std::vector<int64_t>{2, 0, 2, 1}, at::kLong), 1.25);
  EXPECT_DOUBLE_EQ(record.measures.at("perplexity"), std::exp(1.25));
  EXPECT_DOUBLE_EQ(record.measures.at("token_accuracy"), 0.75);
  const auto ignoring = words(false, output, at::tensor(std::vector<int64_t>{2, -100, 2, 1}, at::kLong), 1);
  EXPECT_DOUBLE_EQ(ignoring.measures.at("token_accuracy"), 2.0 / 3) << "a label that asks for nothing";
}

TEST(Perplexity, ShiftedOutputsAnswerTheNextLabel) {
  // Position l answers label l + 1: 1, 2, then padding that asks for nothing. The last output is not asked.
  const at::Tensor labels = at::tensor(std::vector<int64_t>{0, 1, 2, -100}, at::kLong).unsqueeze(0);
  const at::Tensor output =
      at::stack({ranking({1, 0, 2}), ranking({0, 2, 1}), ranking({0, 1, 2}), ranking({2, 1, 0})})
          .unsqueeze(0);
  EXPECT_DOUBLE_EQ(words(true, output, labels, 1).measures.at("token_accuracy"), 1.0 / 2);
  EXPECT_DOUBLE_EQ(words(false, output, labels, 1).measures.at("token_accuracy"), 0.0) << "the foil";
  // One word asks for nothing when shifted.
  EXPECT_DOUBLE_EQ(
      words(true, output.narrow(1, 0, 1), labels.narrow(1, 0, 1), 1).measures.at("token_accuracy"), 0);
}

}  // namespace
}  // namespace syncopate::train
