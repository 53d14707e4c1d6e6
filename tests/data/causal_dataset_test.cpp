#include "syncopate/data/causal_dataset.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/text/bpe_training.h"

namespace syncopate::data {
namespace {

using Ids = std::vector<int64_t>;

/// Bytes and <|endoftext|> alone: "a" is 64, "b" 65, ...
text::ByteBpe bytes_only() { return text::ByteBpe(text::train_bpe({"x"}, {.size = 257})); }

at::Tensor row(const Ids& values) { return at::tensor(values, at::kLong); }

TEST(CausalDataset, JoinsDocumentsAndCutsBlocks) {
  const CausalDataset data(std::vector<std::string>{"abc", "de"}, bytes_only(), 4);
  ASSERT_EQ(data.size(), 2);
  EXPECT_EQ(data.tokens(), 7);
  const tensor::Batch batch = data.collate(Ids{1, 0}, kEvaluationDraw);
  EXPECT_TRUE(at::equal(batch.at("input_ids")[1], row({64, 65, 66, 256})));
  EXPECT_TRUE(at::equal(batch.at("input_ids")[0], row({67, 68, 256, 256})));
  EXPECT_TRUE(at::equal(batch.at("labels")[0], row({67, 68, 256, -100}))) << "padding is not to be predicted";
  EXPECT_TRUE(at::equal(batch.at("labels")[1], batch.at("input_ids")[1]));
  EXPECT_TRUE(at::equal(batch.at("attention_mask")[0], row({1, 1, 1, 0})));
  EXPECT_EQ(batch.real_tokens, 7);
  EXPECT_EQ(batch.ids, (Ids{1, 0}));
  EXPECT_EQ(data.collate(Ids{1}, 1).at("input_ids").size(1), 3) << "as wide as its longest";
  EXPECT_EQ(data.collate({}, 1).at("labels").sizes(), (at::IntArrayRef{0, 0}));
  EXPECT_THROW(data.collate(Ids{2}, 1), InternalError);
}

TEST(CausalDataset, FingerprintTellsTextsAndBlocksApart) {
  const auto mark = [](const std::vector<std::string>& texts, int64_t length) {
    return CausalDataset(texts, bytes_only(), length).fingerprint();
  };
  EXPECT_EQ(mark({"abc", "de"}, 4), mark({"abc", "de"}, 4));
  EXPECT_NE(mark({"abc", "de"}, 4), mark({"abc", "df"}, 4));
  EXPECT_NE(mark({"abc", "de"}, 4), mark({"abc", "de"}, 5));
}

TEST(CausalDataset, DropsBlocksOfASingleToken) {
  const std::vector<std::string> texts{"abc", "de"};
  EXPECT_EQ(CausalDataset(texts, bytes_only(), 3).size(), 2) << "7 = 3 + 3 + 1";
  EXPECT_EQ(CausalDataset(texts, bytes_only(), 5).size(), 2) << "7 = 5 + 2";
  EXPECT_EQ(CausalDataset(std::vector<std::string>{""}, bytes_only(), 5).size(), 0);
  EXPECT_EQ(CausalDataset(std::vector<std::string>{}, bytes_only(), 5).size(), 0);
  EXPECT_THROW(CausalDataset(texts, bytes_only(), 1), ConfigError);
}

TEST(CausalDataset, WithoutAnEndOfTextDocumentsFollowEachOther) {
  text::BpeTable table = bytes_only().table();
  table.words.pop_back();
  const CausalDataset data(std::vector<std::string>{"ab", "c"}, text::ByteBpe(table), 8);
  EXPECT_TRUE(at::equal(data.collate(Ids{0}, 1).at("input_ids")[0], row({64, 65, 66})));
}

TEST(CausalDataset, ParallelTokenizationMatchesOneThread) {
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i)
    texts.push_back(std::string(static_cast<size_t>(i % 700), static_cast<char>('a' + i % 26)) + " the end");
  const text::ByteBpe bpe(text::train_bpe({"the end the end"}, {.size = 265}));
  std::vector<int64_t> expected;
  for (const std::string& text : texts) {
    for (const int32_t id : bpe.encode(text)) expected.push_back(id);
    expected.push_back(*bpe.end_of_text());
  }
  const CausalDataset data(texts, bpe, 1000);
  ASSERT_EQ(data.tokens(), static_cast<int64_t>(expected.size()));
  for (int64_t id = 0; id + 1 < data.size(); ++id) {
    const at::Tensor block = data.collate(Ids{id}, 1).at("input_ids")[0];
    ASSERT_TRUE(std::equal(block.data_ptr<int64_t>(), block.data_ptr<int64_t>() + 1000,
                           expected.begin() + id * 1000));
  }
}

}  // namespace
}  // namespace syncopate::data
