// What Hugging Face's own tokenizer says, where the shared data is present.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "syncopate/text/wordpiece.h"
#include "tests/support/support.h"

namespace syncopate::text {
namespace {

using Json = nlohmann::json;

struct Tally {
  int64_t lines = 0;
  int64_t differences = 0;
};

/// `longer`: room added to every limit, which must be felt.
Tally compare(const WordPiece& tokenizer, const std::filesystem::path& path, int64_t longer = 0) {
  Tally tally;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const Json expected = Json::parse(line);
    ++tally.lines;
    if (expected.contains("text")) {
      tally.differences += Json(tokenizer.encode(expected["text"].get<std::string>())) != expected["ids"];
    } else {
      const Encoding got =
          tokenizer.encode(expected["a"].get<std::string>(), expected["b"].get<std::string>(),
                           expected["max_length"].get<int64_t>() + longer);
      tally.differences += Json(got.ids) != expected["ids"] || Json(got.types) != expected["types"];
    }
  }
  return tally;
}

TEST(WordPieceOracle, UncasedTexts) {
  SYNCOPATE_NEED_SHARED(oracle, "oracles/wordpiece/single.jsonl");
  SYNCOPATE_NEED_SHARED(vocabulary, "data/bert_vocab/vocab.txt");
  const WordPiece tokenizer = WordPiece::load(vocabulary);
  const Tally tally = compare(tokenizer, oracle);
  EXPECT_EQ(tally.lines, 4828);
  EXPECT_EQ(tally.differences, 0);
  for (const TextRules foil :
       {rules_for(false), TextRules{true, false, true}, TextRules{true, true, false}}) {
    EXPECT_GT(compare(WordPiece(tokenizer.words(), foil), oracle).differences, 0);
  }
}

TEST(WordPieceOracle, TruncatedPairs) {
  SYNCOPATE_NEED_SHARED(oracle, "oracles/wordpiece/pairs.jsonl");
  SYNCOPATE_NEED_SHARED(vocabulary, "data/bert_vocab/vocab.txt");
  const WordPiece tokenizer = WordPiece::load(vocabulary);
  const Tally tally = compare(tokenizer, oracle);
  EXPECT_EQ(tally.lines, 500);
  EXPECT_EQ(tally.differences, 0);
  EXPECT_GT(compare(tokenizer, oracle, 1).differences, 100);
}

TEST(WordPieceOracle, CasedTexts) {
  SYNCOPATE_NEED_SHARED(folder, "oracles/wordpiece-cased");
  const WordPiece tokenizer = WordPiece::load(folder);
  EXPECT_FALSE(tokenizer.lower_case());
  const Tally tally = compare(tokenizer, folder / "single.jsonl");
  EXPECT_EQ(tally.lines, 975);
  EXPECT_EQ(tally.differences, 0);
  EXPECT_GT(compare(WordPiece(tokenizer.words(), rules_for(true)), folder / "single.jsonl").differences, 0);
}

}  // namespace
}  // namespace syncopate::text
