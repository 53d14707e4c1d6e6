#include "syncopate/data/text_dataset.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "syncopate/text/wordpiece.h"
#include "tests/support/fixtures.h"

namespace syncopate::data {
namespace {

text::WordPiece abc_tokenizer() {
  return text::WordPiece(test::vocabulary_of({"a", "b", "c"}), text::rules_for(true));
}

const std::vector<corpora::TextExample> kExamples{
    {"a b c", "", 1}, {"a", "b b", 0}, {"", "", -1}, {"a a a a a", "b b b", 2}};

TextDataset dataset_of(const std::vector<corpora::TextExample>& texts, int64_t max_length) {
  const text::WordPiece tokenizer = abc_tokenizer();
  const auto examples = std::make_shared<MemoryExamples>();
  for (const corpora::TextExample& text : texts) examples->append(text, tokenizer, max_length);
  return TextDataset(examples, tokenizer.pad());
}

at::Tensor rows(std::vector<int64_t> values, int64_t width) {
  return at::tensor(values, at::kLong).view({-1, width});
}

TEST(TextDataset, PadsToTheLongestOfTheBatch) {
  const TextDataset data = dataset_of(kExamples, 64);
  ASSERT_EQ(data.size(), 4);
  EXPECT_EQ(data.length(0), 5);
  const tensor::Batch batch = data.collate(std::vector<int64_t>{2, 1, 0}, kEvaluationDraw);
  EXPECT_TRUE(
      at::equal(batch.at("input_ids"), rows({2, 3, 0, 0, 0, 0, 2, 5, 3, 6, 6, 3, 2, 5, 6, 7, 3, 0}, 6)));
  EXPECT_TRUE(
      at::equal(batch.at("token_type_ids"), rows({0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0}, 6)));
  EXPECT_TRUE(
      at::equal(batch.at("attention_mask"), rows({1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, 6)));
  EXPECT_TRUE(at::equal(batch.at("labels"), at::tensor({-1, 0, 1}, at::kLong)));
  EXPECT_EQ(batch.ids, (std::vector<int64_t>{2, 1, 0}));
  EXPECT_EQ(batch.real_tokens, 2 + 6 + 5);
  const tensor::Batch shorter = data.collate(std::vector<int64_t>{2}, kEvaluationDraw);
  EXPECT_EQ(shorter.at("input_ids").sizes(), (at::IntArrayRef{1, 2}))
      << "the foil: another batch, another width";
  EXPECT_EQ(shorter.at("input_ids").scalar_type(), at::kLong);
}

TEST(TextDataset, FingerprintTellsTextsAndLabelsApart) {
  const uint64_t mark = dataset_of(kExamples, 64).fingerprint();
  EXPECT_EQ(dataset_of(kExamples, 64).fingerprint(), mark);
  auto changed = kExamples;
  changed[3].label = 1;
  EXPECT_NE(dataset_of(changed, 64).fingerprint(), mark) << "one label";
  changed = kExamples;
  changed[0].a = "a b b";
  EXPECT_NE(dataset_of(changed, 64).fingerprint(), mark) << "one word";
  changed = kExamples;
  std::swap(changed[0], changed[1]);
  EXPECT_NE(dataset_of(changed, 64).fingerprint(), mark) << "another order";
  changed = kExamples;
  changed[1] = {"a b", "b", 0};
  EXPECT_NE(dataset_of(changed, 64).fingerprint(), mark) << "where the second text begins";
}

TEST(TextDataset, TruncatesToMaxLength) {
  const TextDataset data = dataset_of(kExamples, 7);
  const tensor::Batch batch = data.collate(std::vector<int64_t>{3}, kEvaluationDraw);
  EXPECT_TRUE(at::equal(batch.at("input_ids"), rows({2, 5, 5, 3, 6, 6, 3}, 7)));
  EXPECT_EQ(dataset_of(kExamples, 64).length(3), 11);
  EXPECT_THROW(dataset_of(kExamples, 2), ConfigError);
}

TEST(TextDataset, NoExamplesMakeAnEmptyBatch) {
  const TextDataset data = dataset_of(kExamples, 64);
  const tensor::Batch batch = data.collate({}, kEvaluationDraw);
  EXPECT_EQ(batch.size(), 0);
  EXPECT_EQ(batch.at("input_ids").sizes(), (at::IntArrayRef{0, 0}));
  EXPECT_EQ(batch.at("labels").numel(), 0);
  EXPECT_THROW(data.collate(std::vector<int64_t>{4}, kEvaluationDraw), InternalError);
  EXPECT_EQ(dataset_of({}, 64).size(), 0);
}

TEST(TextTask, HoldsOutTheSmallestKeysInOrder) {
  corpora::TextTask task;
  corpora::hold_out({{"a", "", 0}, {"b", "", 0}, {"c", "", 0}, {"d", "", 0}}, {5, 1, 5, 0}, 3, task);
  ASSERT_EQ(task.train.size(), 1U);
  EXPECT_EQ(task.train[0].a, "c") << "of equal keys the earlier is smaller";
  ASSERT_EQ(task.test.size(), 3U);
  EXPECT_EQ(task.test[0].a + task.test[1].a + task.test[2].a, "abd");
}

TEST(TextTask, TheStableHashNeverChanges) {
  EXPECT_EQ(corpora::stable_hash("abc"), 0x29e32c04ec3f9c30ULL);
  EXPECT_EQ(corpora::stable_hash(""), 0xc3817c016ba4ff30ULL);
  EXPECT_NE(corpora::stable_hash("abd"), corpora::stable_hash("abc"));
}

}  // namespace
}  // namespace syncopate::data
