// Damaged inputs: thousands of them, the same ones every time. Each is read or refused by a DataError or
// ConfigError; nothing else may happen.
#include <gtest/gtest.h>

#include "syncopate/data/task.h"
#include "syncopate/data/vocabulary.h"
#include "syncopate/data/wordpiece.h"
#include "tests/data/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::data {
namespace {

using syncopate::test::TempDir;
using test::mutate;
using test::refused;

constexpr int kInputs = 2000;

/// A fresh file each time: some file systems flush to disk when a file is overwritten, which takes seconds in
/// all.
void write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::remove(path);
  syncopate::test::write_text(path, text);
}

TEST(Robustness, AnyBytesAreAText) {
  const WordPiece lower(test::vocabulary_of({"a", "##a", "cafe", "中", "."}), rules_for(true));
  const WordPiece cased(lower.words(), rules_for(false));
  const std::string text =
      "A naïve café. 中文かな한글 [MASK] e\u0301\u0323 👨‍👩‍👧 \u302F\U0001D165 aaaa" +
      std::string(120, 'a');
  Rng rng(1);
  int different = 0;
  for (int i = 0; i < kInputs; ++i) {
    const std::string damaged = mutate(text, rng), other = mutate(text, rng);
    different += lower.encode(damaged) != lower.encode(text);
    for (const WordPiece* tokenizer : {&lower, &cased}) {
      const Encoding encoding = tokenizer->encode(damaged, other, 3 + i % 60);
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
    write_text(folder / "vocab.txt", i % 2 == 0 ? mutate(text, rng) : text);
    write_text(folder / "tokenizer_config.json", i % 2 == 0 ? settings : mutate(settings, rng));
    refusals += refused([&] { WordPiece::load(folder.path()).encode("a café 中 [MASK] aaa"); });
  }
  EXPECT_GT(refusals, kInputs / 4);
  EXPECT_LT(refusals, kInputs);
}

TEST(Robustness, DamagedTables) {
  const TempDir folder;
  const std::string text =
      "index\tsentence1\tsentence2\tlabel\n0\tNo weapons.\tWeapons.\tnot_entailment\n1\tA café\tA "
      "place\tentailment\n"
      "2\tx y z\tz\tentailment\n";
  Rng rng(3);
  int refusals = 0;
  for (int i = 0; i < kInputs; ++i) {
    write_text(folder / "x.tsv", mutate(text, rng));
    refusals += refused([&] { load_task({"rte", folder / "x.tsv"}, Purpose::kTrain); });
    refused([&] { load_task({"sst2", folder / "x.tsv"}, Purpose::kPredict); });
  }
  EXPECT_GT(refusals, kInputs / 4);
  EXPECT_LT(refusals, kInputs);
}

TEST(Robustness, DamagedWordNet) {
  const TempDir folder;
  const std::string text =
      "  1 This software is provided\n"
      "00001740 03 n 01 entity 0 001 ~ 00001930 n 0000 | that which is perceived  \n"
      "00001930 03 n 01 physical_entity 0 001 @ 00001740 n 0000 | an entity that exists  \n"
      "02084071 05 n 01 dog 0 000 | a member of the genus Canis  \n";
  Rng rng(4);
  int refusals = 0;
  for (int i = 0; i < kInputs; ++i) {
    write_text(folder / "data.noun", mutate(text, rng));
    refusals += refused([&] { load_task({"supersense", folder / "data.noun"}, Purpose::kTrain); });
  }
  EXPECT_GT(refusals, kInputs / 4);
  EXPECT_LT(refusals, kInputs);
}

TEST(Robustness, AVocabularyFromAnyBytesTokenizesThem) {
  const std::string text = "A naïve café. 中文かな한글 [MASK] e\u0301 aaaa bbb";
  Rng rng(5);
  for (int i = 0; i < 500; ++i) {
    const std::string damaged = mutate(text, rng);
    refused([&] {
      const WordPiece tokenizer(train_vocabulary({damaged}, {.size = 60 + i % 40, .min_count = 1}),
                                rules_for(true));
      tokenizer.encode(damaged);
    });
  }
}

}  // namespace
}  // namespace syncopate::data
