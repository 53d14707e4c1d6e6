#include "syncopate/data/masked_dataset.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/fixtures.h"

namespace syncopate::data {
namespace {

using Ids = std::vector<int64_t>;

/// a0 a1 ... and their inner pieces ##b0 ##b1 ...
text::WordPiece tokenizer() {
  std::vector<std::string> words;
  for (const char* prefix : {"a", "##b"}) {
    for (char c = 'c'; c <= 'z'; ++c) words.push_back(std::string(prefix).append(1, c));
  }
  return text::WordPiece(test::vocabulary_of(words), text::rules_for(true));
}

/// Words of one to three pieces.
std::vector<std::string> documents(int count, int words) {
  Rng rng(7);
  const auto letter = [&] { return static_cast<char>('c' + rng.below(24)); };
  std::vector<std::string> texts;
  for (int d = 0; d < count; ++d) {
    std::string text;
    for (int w = 0; w < words; ++w) {
      text.append(" a").append(1, letter());
      for (uint64_t more = rng.below(3); more > 0; --more) text.append("b").append(1, letter());
    }
    texts.push_back(text);
  }
  return texts;
}

/// What was chosen in each row: column to label.
std::vector<std::map<int64_t, int64_t>> choices_of(const tensor::Batch& batch) {
  std::vector<std::map<int64_t, int64_t>> rows(batch.ids.size());
  const int64_t width = batch.at("input_ids").size(1);
  for (int64_t m = 0; m < batch.at("masked").size(0); ++m) {
    const auto place = batch.at("masked")[m].item<int64_t>();
    rows[static_cast<size_t>(place / width)][place % width] = batch.at("labels")[m].item<int64_t>();
  }
  return rows;
}

/// The words as they were before masking.
at::Tensor restored(const tensor::Batch& batch) {
  at::Tensor ids = batch.at("input_ids").clone();
  ids.view(-1).index_put_({batch.at("masked")}, batch.at("labels"));
  return ids;
}

TEST(MaskedDataset, FingerprintTellsTextsApartButNotDraws) {
  const auto mark = [](const std::vector<std::string>& texts, const MaskOptions& options) {
    return MaskedDataset(texts, tokenizer(), options).fingerprint();
  };
  const auto texts = documents(3, 20);
  EXPECT_EQ(mark(texts, {.max_length = 10}), mark(texts, {.max_length = 10, .seed = 4}));
  auto changed = texts;
  std::swap(changed[0], changed[1]);
  EXPECT_NE(mark(texts, {.max_length = 10}), mark(changed, {.max_length = 10}));
}

TEST(MaskedDataset, PacksDocumentsIntoBlocks) {
  const text::WordPiece words = tokenizer();
  const std::vector<std::string> texts{"ac ad ae af", "", "ag ah ai aj ak al am an ao ap aq"};
  const MaskedDataset data(texts, words, {.max_length = 10});
  ASSERT_EQ(data.size(), 2);  // 4 + [SEP] + 11 = 16 pieces, 8 a block
  const tensor::Batch batch = data.collate(Ids{0, 1}, 3);
  const int64_t a = 5;
  EXPECT_TRUE(at::equal(restored(batch)[0],
                        at::tensor({2L, a, a + 1, a + 2, a + 3, 3L, a + 4, a + 5, a + 6, 3L}, at::kLong)));
  EXPECT_EQ(restored(batch)[1][1].item<int64_t>(), a + 7);
  EXPECT_EQ(batch.real_tokens, 20);
  EXPECT_EQ(batch.at("token_type_ids").sum().item<int64_t>(), 0);
  EXPECT_EQ(MaskedDataset(texts, words, {.max_length = 11}).size(), 1) << "7 left over: dropped";
  EXPECT_EQ(MaskedDataset(texts, words, {.max_length = 9}).size(), 2) << "2 left over: dropped";
  EXPECT_EQ(MaskedDataset(std::vector<std::string>{"ac"}, words, {}).size(), 1) << "the only one stays";
  EXPECT_EQ(MaskedDataset(std::vector<std::string>{""}, words, {}).size(), 0);
}

TEST(MaskedDataset, PadsAndKeepsPlacesRight) {
  const MaskedDataset data(documents(3, 50), tokenizer(), {.max_length = 60});
  const int64_t last = data.size() - 1;
  const tensor::Batch batch = data.collate(Ids{last, 0}, 1);
  const at::Tensor mask = batch.at("attention_mask");
  const auto real = mask[0].sum().item<int64_t>();
  ASSERT_LT(real, 60);
  EXPECT_EQ(mask[1].sum().item<int64_t>(), 60);
  EXPECT_EQ(batch.real_tokens, real + 60);
  EXPECT_EQ(batch.at("input_ids")[0][real - 1].item<int64_t>(), 3);
  EXPECT_EQ(batch.at("input_ids")[0].slice(0, real).sum().item<int64_t>(), 0);
  const at::Tensor places = batch.at("masked");
  EXPECT_TRUE((places.slice(0, 1) > places.slice(0, 0, -1)).all().item<bool>()) << "ascending";
  const tensor::Batch alone = data.collate(Ids{last}, 1);
  EXPECT_EQ(alone.at("input_ids").size(1), real);
  EXPECT_EQ(choices_of(alone)[0], choices_of(batch)[0]) << "columns do not move with the width";
  const tensor::Batch none = data.collate({}, 1);
  EXPECT_EQ(none.at("input_ids").sizes(), (at::IntArrayRef{0, 0}));
  EXPECT_EQ(none.at("masked").numel(), 0);
  EXPECT_EQ(none.at("labels").scalar_type(), at::kLong);
}

TEST(MaskedDataset, MaskDependsOnlyOnSeedDrawAndExample) {
  const auto texts = documents(4, 100);
  const text::WordPiece words = tokenizer();
  const MaskedDataset data(texts, words, {.max_length = 40, .seed = 1});
  const auto of = [](const MaskedDataset& from, Ids ids, uint64_t draw) {
    return from.collate(ids, draw).at("input_ids");
  };
  EXPECT_TRUE(at::equal(of(data, {2, 0, 1}, 9)[0], of(data, {1, 2}, 9)[1])) << "in any batch";
  EXPECT_TRUE(at::equal(of(data, {2, 2}, 9)[0], of(data, {2, 2}, 9)[1]));
  EXPECT_FALSE(at::equal(of(data, {2}, 9), of(data, {2}, 10))) << "another draw";
  EXPECT_FALSE(
      at::equal(of(data, {2}, 9), of(MaskedDataset(texts, words, {.max_length = 40, .seed = 2}), {2}, 9)));
  EXPECT_FALSE(at::equal(data.collate(Ids{0}, 9).at("masked"), data.collate(Ids{1}, 9).at("masked")))
      << "another example";
  const at::Tensor original = restored(data.collate(Ids{2}, 9));
  EXPECT_TRUE(at::equal(original, restored(data.collate(Ids{2}, 10)))) << "labels are what stood there";
}

TEST(MaskedDataset, MasksExactlyTheRateAndReplacesLikeBert) {
  const MaskedDataset data(documents(10, 300), tokenizer(), {.max_length = 66});
  int64_t chosen = 0, hidden = 0, kept = 0, replaced = 0;
  std::set<int64_t> replacements;
  for (uint64_t draw = 1; draw <= 20; ++draw) {
    for (int64_t id = 0; id + 1 < data.size(); ++id) {
      const tensor::Batch batch = data.collate(Ids{id}, draw);
      const at::Tensor original = restored(batch);
      const auto special = (original < 5).sum().item<int64_t>();
      const int64_t maskable = 66 - special;
      ASSERT_EQ(batch.at("masked").size(0), std::llround(0.15 * static_cast<double>(maskable)));
      const auto choices = choices_of(batch);
      for (const auto& [column, label] : choices[0]) {
        ASSERT_GE(label, 5) << "special words are never chosen";
        const auto shown = batch.at("input_ids")[0][column].item<int64_t>();
        ++chosen;
        hidden += shown == 4;
        kept += shown == label;
        replaced += shown != 4 && shown != label;
        if (shown != 4) replacements.insert(shown);
      }
    }
  }
  const auto share = [&](int64_t count) { return static_cast<double>(count) / static_cast<double>(chosen); };
  ASSERT_GT(chosen, 10000);
  EXPECT_NEAR(share(hidden), 0.8, 0.02);
  EXPECT_NEAR(share(kept), 0.1, 0.015);
  EXPECT_NEAR(share(replaced), 0.1, 0.015);
  EXPECT_EQ(replacements.size(), 48U) << "any word but the special ones";
  EXPECT_GE(*replacements.begin(), 5);
}

TEST(MaskedDataset, ShortTextHasAtLeastOneMask) {
  const text::WordPiece words = tokenizer();
  const MaskedDataset one(std::vector<std::string>{"ac"}, words, {});
  EXPECT_EQ(one.collate(Ids{0}, 1).at("labels").size(0), 1);
  const MaskedDataset unknown(std::vector<std::string>{"? ! ?"}, words, {});
  EXPECT_EQ(unknown.collate(Ids{0}, 1).at("labels").size(0), 0) << "nothing to choose";
}

/// Rows whose chosen places leave out a piece of a word they touch.
int64_t torn(const MaskedDataset& data, const text::WordPiece& words) {
  int64_t count = 0;
  for (int64_t id = 0; id < data.size(); ++id) {
    const tensor::Batch batch = data.collate(Ids{id}, 1);
    const at::Tensor original = restored(batch)[0];
    const auto chosen = choices_of(batch)[0];
    for (int64_t column = 2; column + 1 < original.size(0); ++column) {
      const bool inner = words.token(original[column].item<int64_t>()).starts_with("##");
      count += inner && chosen.contains(column) != chosen.contains(column - 1);
    }
  }
  return count;
}

TEST(MaskedDataset, WholeWordsStayWhole) {
  const auto texts = documents(5, 200);
  const text::WordPiece words = tokenizer();
  const MaskedDataset whole(texts, words, {.max_length = 50, .whole_words = true});
  EXPECT_EQ(torn(whole, words), 0);
  EXPECT_GT(torn(MaskedDataset(texts, words, {.max_length = 50}), words), 50) << "the foil: pieces";
  for (int64_t id = 0; id < whole.size(); ++id) {
    const tensor::Batch batch = whole.collate(Ids{id}, 1);
    const auto maskable = (restored(batch) >= 5).sum().item<int64_t>();
    const auto wanted = std::max<int64_t>(1, std::llround(0.15 * static_cast<double>(maskable)));
    EXPECT_GE(batch.at("masked").size(0), wanted);
    EXPECT_LE(batch.at("masked").size(0), wanted + 2) << "at most the rest of one word more";
  }
}

TEST(MaskedDataset, ParallelTokenizationMatchesOneThread) {
  const auto texts = documents(400, 300);  // large enough for several threads
  const text::WordPiece words = tokenizer();
  const MaskedDataset data(texts, words, {.max_length = 128});
  std::vector<int64_t> expected;
  for (const std::string& text : texts) {
    for (const int32_t id : words.encode(text)) expected.push_back(id);
    expected.push_back(words.sep());
  }
  const auto count = static_cast<size_t>(data.size() - 1) * 126;
  std::vector<int64_t> got;
  for (int64_t id = 0; id + 1 < data.size(); ++id) {
    const at::Tensor row = restored(data.collate(Ids{id}, 1))[0];
    for (int64_t column = 1; column < 127; ++column) got.push_back(row.data_ptr<int64_t>()[column]);
  }
  expected.resize(count);
  EXPECT_EQ(got, expected);
}

TEST(MaskedDataset, RejectsOptionsOutOfRange) {
  const text::WordPiece words = tokenizer();
  const std::vector<std::string> texts{"ac"};
  for (const double rate : {0.0, 1.0, -0.1, 1.5, std::nan("")}) {
    EXPECT_THROW(MaskedDataset(texts, words, {.rate = rate}), ConfigError);
  }
  EXPECT_EQ(test::sentence<ConfigError>([&] { MaskedDataset(texts, words, {.rate = 1.5}); }),
            "mask_rate must be above 0 and below 1, got 1.5");
  EXPECT_THROW(MaskedDataset(texts, words, {.max_length = 2}), ConfigError);
  EXPECT_THROW(MaskedDataset(texts, words, {}).collate(Ids{1}, 0), InternalError);
}

}  // namespace
}  // namespace syncopate::data
