// Damaged inputs: thousands of them, the same ones every time. Each is read or refused by a DataError or
// ConfigError; nothing else may happen.
#include <gtest/gtest.h>

#include "syncopate/text/vocabulary.h"
#include "syncopate/text/wordpiece.h"
#include "tests/data/fuzz.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::data {
namespace {

using syncopate::test::TempDir;
using test::mutate;
using test::refused;

constexpr int kInputs = 2000;

TEST(Robustness, AcceptsArbitraryBytesAsText) {
  const text::WordPiece lower(test::vocabulary_of({"a", "##a", "cafe", "中", "."}), text::rules_for(true));
  const text::WordPiece cased(lower.words(), text::rules_for(false));
  const std::string text =
      "A naïve café. 中文かな한글 [MASK] e\u0301\u0323 👨‍👩‍👧 \u302F\U0001D165 aaaa" +
      std::string(120, 'a');
  Rng rng(1);
  int different = 0;
  for (int i = 0; i < kInputs; ++i) {
    const std::string damaged = mutate(text, rng), other = mutate(text, rng);
    different += lower.encode(damaged) != lower.encode(text);
    for (const text::WordPiece* tokenizer : {&lower, &cased}) {
      const text::Encoding encoding = tokenizer->encode(damaged, other, 3 + i % 60);
      ASSERT_LE(encoding.ids.size(), static_cast<size_t>(3 + i % 60));
      ASSERT_EQ(encoding.ids.size(), encoding.types.size());
      for (const int32_t id : encoding.ids) ASSERT_LT(id, tokenizer->size());
    }
  }
  EXPECT_GT(different, kInputs / 2) << "the damage must be felt";
}

TEST(Robustness, DamagedVocabularies) {
  const TempDir folder;
  std::string text;
  for (const std::string& word : test::vocabulary_of({"a", "##a", "cafe", "中", "."})) text += word + "\n";
  const std::string settings =
      R"({"do_lower_case": false, "strip_accents": null, "tokenize_chinese_chars": true})";
  Rng rng(2);
  int refusals = 0;
  for (int i = 0; i < kInputs; ++i) {
    test::write_fresh(folder / "vocab.txt", i % 2 == 0 ? mutate(text, rng) : text);
    test::write_fresh(folder / "tokenizer_config.json", i % 2 == 0 ? settings : mutate(settings, rng));
    refusals += refused([&] { text::WordPiece::load(folder.path()).encode("a café 中 [MASK] aaa"); });
  }
  EXPECT_GT(refusals, kInputs / 4);
  EXPECT_LT(refusals, kInputs);
}

TEST(Robustness, DamagedFilesOfEveryKind) {
  for (const test::FuzzTarget& target : test::all_targets()) {
    const int refusals = test::fuzz(target, kInputs, 3);
    EXPECT_GT(refusals, 0) << target.name << ": the damage must be felt";
    EXPECT_LT(refusals, kInputs) << target.name << ": something must be left to read";
    const TempDir folder;
    EXPECT_EQ(refused([&] { target.run(target.seed_text, folder.path()); }), 0) << target.name;
  }
}

TEST(Robustness, VocabularyTrainedOnArbitraryBytesTokenizesThem) {
  const std::string text = "A naïve café. 中文かな한글 [MASK] e\u0301 aaaa bbb";
  Rng rng(5);
  for (int i = 0; i < 500; ++i) {
    const std::string damaged = mutate(text, rng);
    refused([&] {
      const text::WordPiece tokenizer(
          text::train_vocabulary({damaged}, {.size = 60 + i % 40, .min_count = 1}), text::rules_for(true));
      tokenizer.encode(damaged);
    });
  }
}

}  // namespace
}  // namespace syncopate::data
