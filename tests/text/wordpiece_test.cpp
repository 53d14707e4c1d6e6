#include "syncopate/text/wordpiece.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "syncopate/text/vocabulary.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::text {
namespace {

using Ids = std::vector<int32_t>;
using test::sentence;
using test::vocabulary_of;

constexpr int32_t kPad = 0, kUnk = 1, kCls = 2, kSep = 3, kMask = 4;

WordPiece small(bool lower_case = true) {
  //                                  5     6      7       8     9      10   11   12     13   14      15   16
  return WordPiece(
      vocabulary_of({"un", "##aff", "##able", "aff", "able", ",", "中", "café", "cafe", "Un", "x", "##x"}),
      rules_for(lower_case));
}

TEST(WordPiece, MatchesTheLongestPieceFirst) {
  EXPECT_EQ(small().encode("unaffable"), (Ids{5, 6, 7}));
  EXPECT_EQ(small().encode("aff able, un"), (Ids{8, 9, 10, 5}));
  EXPECT_EQ(small().encode("xx"), (Ids{15, 16}));
  const WordPiece longer(vocabulary_of({"un", "unaff", "##aff", "##able", "##a"}), rules_for(true));
  EXPECT_EQ(longer.encode("unaffable"), (Ids{6, 8}))
      << "a longer first piece wins, though the shorter would do";
}

TEST(WordPiece, UnmatchedWordIsUnknownAsAWhole) {
  EXPECT_EQ(small().encode("unq"), Ids{kUnk});
  EXPECT_EQ(small().encode("un q aff"), (Ids{5, kUnk, 8}));
  EXPECT_EQ(small().encode("able##x"), (Ids{9, kUnk, kUnk, 15})) << "## in a text is punctuation";
}

TEST(WordPiece, CaseAndAccents) {
  EXPECT_EQ(small(true).encode("Un CAFÉ"), (Ids{5, 13}));
  EXPECT_EQ(small(false).encode("Un café"), (Ids{14, 12}));
  EXPECT_EQ(small(false).encode("CAFÉ"), Ids{kUnk});
  EXPECT_EQ(small().encode("中un中"), (Ids{11, 5, 11}));
}

TEST(WordPiece, WordsOverAHundredCharactersAreUnknown) {
  EXPECT_EQ(small().encode(std::string(100, 'x')).size(), 100U);
  EXPECT_EQ(small().encode(std::string(101, 'x')), Ids{kUnk});
  const WordPiece wide(vocabulary_of({"ø", "##ø", std::string(101, 'y')}), rules_for(true));
  std::string word;
  for (int i = 0; i < 100; ++i) word += "ø";
  EXPECT_EQ(wide.encode(word).size(), 100U) << "characters count, not bytes";
  EXPECT_EQ(wide.encode(word + "ø"), Ids{kUnk});
  EXPECT_EQ(wide.encode(std::string(101, 'y')), Ids{kUnk}) << "even where the vocabulary has it";
}

TEST(WordPiece, SpecialTokensInTheTextStayWhole) {
  EXPECT_EQ(small().encode("[CLS]un[SEP] [MASK]x[PAD][UNK]"), (Ids{kCls, 5, kSep, kMask, 15, kPad, kUnk}));
  EXPECT_EQ(small().encode("[cls]"), (Ids{kUnk, kUnk, kUnk})) << "only as written";
  EXPECT_EQ(small().encode("[CLS"), (Ids{kUnk, kUnk}));
  EXPECT_EQ(small().encode("[[SEP]]"), (Ids{kUnk, kSep, kUnk}));
}

TEST(WordPiece, AddsSpecialTokensAndTypes) {
  const Encoding single = small().encode("un able", std::nullopt, 0);
  EXPECT_EQ(single.ids, (Ids{kCls, 5, 9, kSep}));
  EXPECT_EQ(single.types, (Ids{0, 0, 0, 0}));
  const Encoding pair = small().encode("un", "able x", 0);
  EXPECT_EQ(pair.ids, (Ids{kCls, 5, kSep, 9, 15, kSep}));
  EXPECT_EQ(pair.types, (Ids{0, 0, 0, 1, 1, 1}));
  const Encoding empty = small().encode("un", "", 0);
  EXPECT_EQ(empty.ids, (Ids{kCls, 5, kSep, kSep}));
  EXPECT_EQ(empty.types, (Ids{0, 0, 0, 1}));
  const Encoding bare = small().encode("un", "able", 0, false);
  EXPECT_EQ(bare.ids, (Ids{5, 9}));
  EXPECT_EQ(bare.types, (Ids{0, 1}));
}

/// How many pieces of `a` and `b` words are kept within `room`.
std::pair<int, int> kept(int a, int b, int room) {
  std::string first, second;
  for (int i = 0; i < a; ++i) first += "un ";
  for (int i = 0; i < b; ++i) second += "able ";
  const Encoding encoding = small().encode(first, second, room + 3);
  const auto of = [&](int id) {
    return static_cast<int>(std::count(encoding.ids.begin(), encoding.ids.end(), id));
  };
  return {of(5), of(9)};
}

TEST(WordPiece, TruncatesTheLongestFirst) {
  using Kept = std::pair<int, int>;
  EXPECT_EQ(kept(3, 4, 7), Kept(3, 4));
  EXPECT_EQ(kept(10, 2, 7), Kept(5, 2)) << "the short one stays whole";
  EXPECT_EQ(kept(2, 10, 7), Kept(2, 5));
  EXPECT_EQ(kept(10, 9, 7), Kept(4, 3)) << "the odd place goes to the longer";
  EXPECT_EQ(kept(9, 10, 7), Kept(3, 4));
  EXPECT_EQ(kept(9, 9, 7), Kept(3, 4)) << "and to the second of equals";
  EXPECT_EQ(kept(9, 9, 8), Kept(4, 4));
  EXPECT_EQ(kept(9, 9, 0), Kept(0, 0));
  EXPECT_EQ(small().encode("un un un able", std::nullopt, 5).ids, (Ids{kCls, 5, 5, 5, kSep}));
  EXPECT_THROW(small().encode("un", std::nullopt, 1), ConfigError);
  EXPECT_THROW(small().encode("un", "un", 2), ConfigError);
  EXPECT_THROW(small().encode("un", std::nullopt, -1), ConfigError);
}

TEST(WordPiece, LooksUpTokensById) {
  EXPECT_EQ(small().token(7), "##able");
  EXPECT_EQ(small().size(), 17);
  EXPECT_THROW(small().token(17), DataError);
  EXPECT_THROW(small().token(-1), DataError);
}

TEST(WordPiece, SaveAndLoadRoundTrip) {
  const syncopate::test::TempDir folder;
  for (const TextRules rules : {rules_for(true), rules_for(false), TextRules{true, false, false}}) {
    const WordPiece before(small().words(), rules);
    before.save(folder / "model");
    const WordPiece after = WordPiece::load(folder / "model");
    EXPECT_EQ(after.words(), before.words());
    EXPECT_EQ(after.rules(), rules);
    EXPECT_EQ(WordPiece::load(folder / "model" / "vocab.txt").rules(), rules)
        << "settings beside the file count";
  }
  small(true).save(folder / "lower");
  small(false).save(folder / "cased");
  EXPECT_NE(WordPiece::load(folder / "lower").encode("Un"), WordPiece::load(folder / "cased").encode("Un"));
}

TEST(WordPiece, SettingsDecideLowerCasing) {
  const syncopate::test::TempDir folder;
  save_vocabulary(folder / "vocab.txt", small().words());
  EXPECT_TRUE(WordPiece::load(folder.path()).lower_case()) << "the default";
  const auto with = [&](const std::string& settings) {
    syncopate::test::write_text(folder / "tokenizer_config.json", settings);
    return WordPiece::load(folder / "vocab.txt").rules();
  };
  EXPECT_EQ(with(R"({"do_lower_case": false, "model_max_length": 512})"), rules_for(false));
  EXPECT_EQ(with(R"({"do_lower_case": true, "strip_accents": null})"), rules_for(true));
  EXPECT_EQ(with(R"({"strip_accents": false})"), (TextRules{true, false, true}));
  EXPECT_EQ(with(R"({"tokenize_chinese_chars": false})"), (TextRules{true, true, false}));
  EXPECT_THROW(with(R"({"do_lower_case": "no"})"), DataError);
  EXPECT_THROW(with("{"), DataError);
  EXPECT_THROW(with("[]"), DataError);
}

TEST(WordPiece, RejectsBadVocabulariesWithLineNumbers) {
  const syncopate::test::TempDir folder;
  const auto load = [&](const std::string& text) {
    syncopate::test::write_text(folder / "vocab.txt", text);
    return sentence<DataError>([&] { WordPiece::load(folder.path()); });
  };
  const std::string good = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  EXPECT_EQ(load(good), "");
  EXPECT_EQ(load("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\na\r\n\r\n"), "");
  EXPECT_NE(load(good + "b\na\n").find("vocab.txt:8: the word \"a\" is already in line 6"),
            std::string::npos);
  EXPECT_NE(load(good + "\nb\n").find("vocab.txt:7"), std::string::npos);
  EXPECT_NE(load(good + "\xFF\n").find("vocab.txt:7"), std::string::npos);
  EXPECT_NE(load("").find("is empty"), std::string::npos);
  EXPECT_NE(load("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n").find("[MASK] is missing"), std::string::npos);
  EXPECT_NE(sentence<DataError>([&] { WordPiece::load(folder / "none"); }), "");
}

}  // namespace
}  // namespace syncopate::text
