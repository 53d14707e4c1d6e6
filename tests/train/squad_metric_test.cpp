#include "syncopate/train/squad_metric.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <optional>

#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/nn/model.h"
#include "syncopate/train/evaluate.h"
#include "tests/contract/ranks.h"

namespace syncopate::train {
namespace {

/// "Aa bb. cc dd" in two windows, [CLS] q [SEP] Aa bb . [SEP] and [CLS] q [SEP] . cc dd [SEP]; "dd" in one.
class SquadMetric : public testing::Test {
 protected:
  SquadMetric()
      : tokenizer_({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "aa", "bb", "cc", "dd", ".", "q"},
                   text::TextRules{}),
        questions_{{"one", "q", 0, {{"bb. cc", 3}, {"cc dd", 7}}}, {"two", "q", 1, {{"dd", 0}}}},
        dataset_(std::make_shared<data::SquadDataset>(
            questions_, std::vector<std::string>{"Aa bb. cc dd", "dd"}, tokenizer_,
            data::WindowOptions{.max_length = 7, .stride = 1, .max_question = 1})) {}

  /// Logits of one feature: the likeliest start and end.
  static at::Tensor span(int64_t start, int64_t end, double height) {
    at::Tensor logits = at::zeros({1, 7, 2});
    logits[0][start][0] = height;
    logits[0][end][1] = height;
    return logits;
  }

  /// Feature f goes to rank owners[f].
  record::EvalRecord score(const std::vector<at::Tensor>& outputs, const std::vector<int>& owners,
                           int ranks) {
    std::vector<record::EvalRecord> records(static_cast<size_t>(ranks));
    const MakeMetric make = squad(dataset_, questions_);
    syncopate::test::run_ranks(ranks, [&](comm::Group& group) {
      const auto metric = make();
      for (size_t f = 0; f < outputs.size(); ++f) {
        if (owners[f] != group.rank()) continue;
        const std::vector<int64_t> ids{static_cast<int64_t>(f)};
        metric->add(outputs[f], dataset_->collate(ids, 0));
      }
      metric->conclude(group, records[static_cast<size_t>(group.rank())]);
    });
    for (const auto& each : records) EXPECT_EQ(each.measures, records[0].measures);
    return records[0];
  }

  text::WordPiece tokenizer_;
  std::vector<corpora::Question> questions_;
  std::shared_ptr<data::SquadDataset> dataset_;
};

TEST_F(SquadMetric, WindowsOfAQuestionMayBeOnTwoRanks) {
  ASSERT_EQ(dataset_->size(), 3);
  // The second window is surer: "cc dd", right. The first alone says "Aa", wrong.
  const std::vector<at::Tensor> outputs{span(3, 3, 5), span(4, 5, 6), span(3, 3, 5)};
  const record::EvalRecord alone = score(outputs, {0, 0, 0}, 1);
  EXPECT_DOUBLE_EQ(alone.measures.at("exact_match"), 100);
  EXPECT_DOUBLE_EQ(alone.measures.at("f1"), 100);
  EXPECT_EQ(alone.examples, 2) << "questions, not windows";
  for (const auto& owners : {std::vector<int>{0, 1, 1}, {1, 0, 1}, {2, 0, 1}, {2, 2, 2}})
    EXPECT_EQ(score(outputs, owners, 3).measures, alone.measures);

  // The foil: the first window is surer.
  const std::vector<at::Tensor> other{span(3, 3, 7), span(4, 5, 6), span(3, 3, 5)};
  const record::EvalRecord half = score(other, {0, 1, 0}, 2);
  EXPECT_DOUBLE_EQ(half.measures.at("exact_match"), 50);
  EXPECT_DOUBLE_EQ(half.measures.at("f1"), 50);
  // "bb." against "bb. cc": one word of one, and of two.
  const std::vector<at::Tensor> part{span(4, 5, 7), span(3, 3, 1), span(3, 3, 5)};
  EXPECT_NEAR(score(part, {0, 1, 0}, 2).measures.at("f1"), (100 * 2.0 / 3 + 100) / 2, 1e-9);
}

/// What predict writes and what evaluate scores must be one answer, also where many likely starts come after
/// all likely ends.
TEST(SquadMetricLong, MatchesTheScoreOfThePredictedAnswers) {
  const text::WordPiece tokenizer(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "q", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"},
      text::TextRules{});
  const std::vector<corpora::Question> questions{{"one", "q", 0, {{"b", 2}}}};
  const auto dataset = std::make_shared<data::SquadDataset>(
      questions, std::vector<std::string>{"a b c d e f g h i j"}, tokenizer,
      data::WindowOptions{.max_length = 16, .stride = 1, .max_question = 1});
  ASSERT_EQ(dataset->size(), 1);
  at::Tensor output = at::zeros({1, 14, 2});
  for (const int64_t position : {10, 11, 12}) output[0][position][0] = 5;  // starts: h i j
  for (const int64_t position : {3, 4, 5}) output[0][position][1] = 5;     // ends: a b c
  output[0][4][0] = 4;                                                     // the fourth start: b
  output[0][4][1] = 5.5;
  const tensor::Batch batch = dataset->collate(std::vector<int64_t>{0}, 0);
  std::vector<data::FeatureAnswers> spans;
  collect_spans(*dataset, output, batch, {}, spans);
  ASSERT_EQ(data::final_answers(*dataset, spans, {}).front(), "b");
  const auto alone = comm::open_alone();
  const auto metric = squad(dataset, questions)();
  metric->add(output, batch);
  record::EvalRecord record;
  metric->conclude(*alone, record);
  EXPECT_DOUBLE_EQ(record.measures.at("exact_match"), 100);
}

/// Gives what is no number for every position.
class Broken : public nn::Model {
 public:
  using nn::Model::parameters;
  std::vector<tensor::NamedTensor> parameters(nn::LayerRange) const override {
    return {{"w", at::zeros({1})}};
  }
  void set_mode(nn::Mode) override {}
  int depth() const override { return 1; }
  using nn::Model::forward;
  at::Tensor forward(at::Tensor, const tensor::Batch& batch, nn::LayerRange) override {
    return at::full({batch.size(), batch.at("input_ids").size(1), 2}, std::nan(""));
  }
  tensor::Loss loss(const at::Tensor& output, const tensor::Batch& batch) const override {
    return {output.sum(), batch.size()};
  }
};

TEST_F(SquadMetric, NonFiniteOutputsGiveANonFiniteLoss) {
  Broken model;
  syncopate::test::run_ranks(2, [&](comm::Group& group) {
    const auto metric = squad(dataset_, questions_)();
    const record::EvalRecord record = evaluate(model, *dataset_, group, *metric, {});
    EXPECT_TRUE(std::isnan(record.loss));
    EXPECT_TRUE(record.measures.empty());
  });
}

}  // namespace
}  // namespace syncopate::train
