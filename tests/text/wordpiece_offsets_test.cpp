#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "syncopate/text/wordpiece.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::text {
namespace {

/// The text of each piece as the original writes it, `|` between them.
std::string stretches(const WordPiece& tokenizer, const std::string& text) {
  std::string all;
  for (const Piece& piece : tokenizer.encode_with_offsets(text)) {
    all.append(all.empty() ? "" : "|")
        .append(text.substr(static_cast<size_t>(piece.begin), static_cast<size_t>(piece.end - piece.begin)));
  }
  return all;
}

/// That ids are encode()'s and places are whole characters that never go back.
void expect_sound(const WordPiece& tokenizer, const std::string& text) {
  const std::vector<int32_t> ids = tokenizer.encode(text);
  const std::vector<Piece> pieces = tokenizer.encode_with_offsets(text);
  ASSERT_EQ(ids.size(), pieces.size()) << text;
  int64_t begin = 0, end = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(ids[i], pieces[i].id) << text;
    ASSERT_GE(pieces[i].begin, begin) << text;
    ASSERT_GE(pieces[i].end, end) << text;
    ASSERT_LT(pieces[i].begin, pieces[i].end) << text;
    ASSERT_LE(pieces[i].end, static_cast<int64_t>(text.size())) << text;
    begin = pieces[i].begin;
    end = pieces[i].end;
  }
}

TEST(WordPieceOffsets, PointIntoTheOriginalText) {
  const WordPiece tokenizer(test::vocabulary_of({"cafe", "na", "##ive", "中", ".", "i", "##s", "is"}),
                            rules_for(true));
  EXPECT_EQ(stretches(tokenizer, "  CAFÉ  NaÏVE."), "CAFÉ|Na|ÏVE|.");
  EXPECT_EQ(stretches(tokenizer, "x 中中 y"), "x|中|中|y") << "unknown words too";
  EXPECT_EQ(stretches(tokenizer, "cafe\u0301 na\u00ADive"), "cafe\u0301|na|ive")
      << "a dropped mark goes with its letter, a dropped format character with none";
  EXPECT_EQ(stretches(tokenizer, "CAFÉ[MASK]is [SEP]."), "CAFÉ|[MASK]|is|[SEP]|.");
  EXPECT_EQ(stretches(tokenizer,
                      "\xFF"
                      "cafe\xE4 is"),
            "cafe|is")
      << "what is not UTF-8 is nobody's";
  const std::string endless(120, 'z');
  EXPECT_EQ(stretches(tokenizer, endless), endless) << "a word too long for any piece";
  EXPECT_EQ(stretches(tokenizer, ""), "");
  const WordPiece cased(test::vocabulary_of({"İ", "##s", "is"}), rules_for(false));
  EXPECT_EQ(stretches(cased, "İs is"), "İ|s|is");
}

TEST(WordPieceOffsets, AreValidForArbitraryBytes) {
  const WordPiece lower(
      test::vocabulary_of({"a", "##a", "cafe", "중", ".", "e", "##e", "i", "\u1112", "##\u1161", "##\u11AB"}),
      rules_for(true));
  const WordPiece cased(lower.words(), TextRules{true, false, false});
  std::string text =
      "A naïve café. 中文かな한글 [MASK] e\u0301\u0323 👨‍👩‍👧 "
      "a\u0301\u302F\U0001D165\u0323 "
      "İaaaa";
  text.append(120, 'a');
  Rng rng(11);
  expect_sound(lower, text);
  EXPECT_NE(stretches(lower, "한").find("한|한"), std::string::npos)
      << "pieces of one syllable share its place";
  for (int i = 0; i < 2000; ++i) {
    const std::string damaged = test::mutate(text, rng);
    expect_sound(lower, damaged);
    expect_sound(cased, damaged);
  }
}

TEST(WordPieceOracle, EncodingWithOffsetsGivesTheSamePieces) {
  SYNCOPATE_NEED_SHARED(oracle, "oracles/wordpiece/single.jsonl");
  SYNCOPATE_NEED_SHARED(vocabulary, "data/bert_vocab/vocab.txt");
  const WordPiece tokenizer = WordPiece::load(vocabulary);
  std::ifstream file(oracle);
  int64_t lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const auto expected = nlohmann::json::parse(line);
    const auto text = expected["text"].get<std::string>();
    std::vector<int32_t> ids;
    for (const Piece& piece : tokenizer.encode_with_offsets(text)) ids.push_back(piece.id);
    ASSERT_EQ(nlohmann::json(ids), expected["ids"]) << line;
    expect_sound(tokenizer, text);
  }
  EXPECT_EQ(lines, 4828);
}

}  // namespace
}  // namespace syncopate::text
