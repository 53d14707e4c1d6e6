#include "syncopate/text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "syncopate/text/bpe_training.h"
#include "syncopate/text/bpe_words.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::text {
namespace {

using syncopate::test::read_text;
using syncopate::test::TempDir;
using syncopate::test::write_text;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

Words words_of(std::string_view text) {
  Words words;
  BpeWords all(text);
  for (auto word = all.next(); !word.empty(); word = all.next()) words.emplace_back(word);
  return words;
}

/// The bytes and what `merges` make of them.
BpeTable table_of(const std::vector<std::pair<std::string, std::string>>& merges) {
  BpeTable table;
  for (const uint8_t byte : bpe_byte_order()) table.words.push_back(bpe_character(byte));
  for (const auto& [left, right] : merges) table.words.push_back(left + right);
  table.words.emplace_back(kEndOfText);
  table.merges = merges;
  return table;
}

Words pieces_of(const ByteBpe& bpe, std::string_view text) {
  Words pieces;
  for (const int32_t id : bpe.encode(text)) pieces.push_back(bpe.token(id));
  return pieces;
}

TEST(BpeWords, SplitLikeGpt2sPattern) {
  EXPECT_EQ(words_of("don't we'll I'd"), (Words{"don", "'t", " we", "'ll", " I", "'d"}));
  EXPECT_EQ(words_of("DON'T 'tis"), (Words{"DON", "'", "T", " '", "tis"})) << "capitals are no endings";
  EXPECT_EQ(words_of("a  b\n\nc \n"), (Words{"a", " ", " b", "\n", "\n", "c", " \n"}));
  EXPECT_EQ(words_of("x12 3½ y!? …"), (Words{"x", "12", " 3½", " y", "!?", " …"}));
  EXPECT_EQ(words_of("été\u00A0中文"), (Words{"été", "\u00A0", "中文"})) << "only a blank joins a word";
  EXPECT_EQ(words_of("\xFF\xFE a\xC3"), (Words{"\xFF\xFE", " a", "\xC3"})) << "what is not UTF-8 is a sign";
  EXPECT_EQ(words_of("'"), (Words{"'"}));
  EXPECT_TRUE(words_of("").empty());
}

TEST(ByteBpe, AppliesTheEarliestMergeFirst) {
  const ByteBpe bpe(table_of({{"b", "c"}, {"a", "b"}, {"a", "bc"}}));
  EXPECT_EQ(pieces_of(bpe, "abc"), (Words{"abc"}));
  EXPECT_EQ(pieces_of(bpe, "abab"), (Words{"ab", "ab"}));
  const ByteBpe other(table_of({{"a", "b"}, {"b", "c"}}));
  EXPECT_EQ(pieces_of(other, "abc"), (Words{"ab", "c"})) << "the foil: another order of merges";
}

TEST(ByteBpe, MergesRepeatsFromTheLeft) {
  const ByteBpe bpe(table_of({{"a", "a"}, {"aa", "aa"}}));
  EXPECT_EQ(pieces_of(bpe, "aaaaaaa"), (Words{"aaaa", "aa", "a"}));
  EXPECT_EQ(bpe.encode(std::string(200001, 'a')).size(), 50001U) << "and one long word takes no for ever";
}

TEST(ByteBpe, RoundTripsArbitraryBytes) {
  const ByteBpe bpe(table_of({{"t", "h"}, {"th", "e"}, {"Ġ", "the"}}));
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every.push_back(static_cast<char>(byte));
  for (const std::string& text :
       {every, std::string(" the the\n\n café 中 <|endoftext|> x"), std::string()}) {
    EXPECT_EQ(bpe.decode(bpe.encode(text)), text);
  }
  EXPECT_EQ(pieces_of(bpe, "a the<|endoftext|>"), (Words{"a", "Ġthe", "<|endoftext|>"}));
  EXPECT_EQ(bpe.encode("<|endoftext|>").at(0), bpe.end_of_text());
  EXPECT_EQ(bpe.size(), 256 + 3 + 1);
  EXPECT_THROW(bpe.token(260), DataError);
  EXPECT_THROW(bpe.decode(std::vector<int32_t>{-1}), DataError);
}

TEST(ByteBpe, CacheDoesNotChangeTheResult) {
  const ByteBpe bpe(table_of({{"t", "h"}, {"th", "e"}}));
  ByteBpe::Memory memory;
  for (const std::string_view text : {"the then the", "then", "ththth the"}) {
    std::vector<int32_t> ids;
    bpe.encode(text, memory, ids);
    EXPECT_EQ(ids, bpe.encode(text));
  }
}

TEST(ByteBpe, SaveAndLoadRoundTrip) {
  const TempDir folder;
  const std::vector<std::string_view> texts{
      "the cat and the hat, the \"bat\" \\ and the rat; café café 中中 \n\n"};
  const ByteBpe bpe(train_bpe(texts, {.size = 300}));
  bpe.save(folder.path());
  for (const auto& path : {folder.path(), folder / "vocab.json"}) {
    const ByteBpe again = ByteBpe::load(path);
    EXPECT_EQ(again.table().words, bpe.table().words);
    EXPECT_EQ(again.table().merges, bpe.table().merges);
    EXPECT_EQ(again.end_of_text(), bpe.end_of_text());
  }
  EXPECT_TRUE(read_text(folder / "merges.txt").starts_with("#version: 0.2\n"));
}

TEST(ByteBpe, RejectsInconsistentFiles) {
  const TempDir folder;
  ByteBpe(table_of({{"b", "c"}, {"a", "bc"}})).save(folder.path());
  const std::string vocabulary = read_text(folder / "vocab.json");
  const auto says = [&](const std::string& words, const std::string& merges, const std::string& expected) {
    write_text(folder / "vocab.json", words);
    write_text(folder / "merges.txt", merges);
    const std::string said = test::sentence<DataError>([&] { ByteBpe::load(folder.path()); });
    EXPECT_NE(said.find(expected), std::string::npos) << said;
  };
  says(vocabulary, "#version: 0.2\nb c\na x\n", "merges.txt:3: the merge \"a x\" needs the word \"ax\"");
  says(vocabulary, "b c\nb c\n", "merges.txt:2: the merge \"b c\" is already in line 1");
  says(vocabulary, "b c\n\na bc\n", "merges.txt:2: a merge is two words");
  says(vocabulary, "b c d\n", "merges.txt:1: a merge is two words");
  says(vocabulary.substr(1), "", "vocab.json is not JSON");
  says("[]", "", "does not hold an object");
  says(R"({"a": 0, "b": 0})", "", "have the same number 0");
  says(R"({"a": 7})", "", "has the number 7, but 1 words are numbered 0 to 0");
  says(R"({"a": "x"})", "", "has no number");
  says(R"({"a": )" + std::string(100000, '[') + std::string(100000, ']') + "}", "", "has no number");
  says(R"({"a": 0})", "", "the byte 0x00 (\"Ā\") is missing");
  BpeTable twice = table_of({});
  twice.words.emplace_back("a");
  EXPECT_NE(test::sentence<DataError>([&] { ByteBpe{twice}; }).find("the word \"a\" is number"),
            std::string::npos);
  EXPECT_THROW(ByteBpe::load(folder / "nowhere"), DataError);
}

TEST(BpeTraining, MergesTheMostFrequentPairs) {
  const BpeTable table = train_bpe({"abab abab", "abab cd"}, {.size = 259, .min_count = 2});
  ASSERT_EQ(table.words.size(), 259U);
  EXPECT_EQ(table.words[0], "!");
  EXPECT_EQ(table.words[255], "Ń");
  EXPECT_EQ(table.words[256], "ab");
  EXPECT_EQ(table.words[257], "abab") << "three times, as often as nothing else";
  EXPECT_EQ(table.words[258], kEndOfText);
  const BpeTable tie = train_bpe({"cdab cdab"}, {.size = 258});
  EXPECT_EQ(tie.words[256], "ab") << "of equal pairs the first in the vocabulary";
  EXPECT_EQ(train_bpe({"abcd"}, {.size = 400}).words.size(), 257U) << "nothing comes twice";
  EXPECT_EQ(train_bpe({"abcd"}, {.size = 400, .min_count = 1}).words.size(), 260U);
  EXPECT_THROW(train_bpe({"a"}, {.size = 256}), ConfigError);
  EXPECT_THROW(train_bpe({""}, {}), DataError);
}

TEST(BpeTraining, TrainedVocabularyCompressesItsTexts) {
  Rng rng(1);
  for (int i = 0; i < 25; ++i) {
    std::string text;
    for (int k = 0; k < 300; ++k) text += "abc d"[rng.below(5)];
    const ByteBpe bpe(train_bpe({text}, {.size = 257 + i}));
    EXPECT_EQ(bpe.decode(bpe.encode(text)), text);
    EXPECT_EQ(bpe.size(), 257 + i);
    if (i > 5) {
      EXPECT_LT(bpe.encode(text).size(), 250U);
    }
  }
}

/// Lines of the oracle that `bpe` encodes otherwise.
int64_t differences(const ByteBpe& bpe, const std::filesystem::path& path, int64_t& lines) {
  int64_t count = 0;
  lines = 0;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line); ++lines) {
    const Json expected = Json::parse(line);
    count += Json(bpe.encode(expected["text"].get<std::string>())) != expected["ids"];
  }
  return count;
}

TEST(BpeOracle, MatchesTransformersOnEveryText) {
  SYNCOPATE_NEED_SHARED(folder, "oracles/bpe");
  const ByteBpe bpe = ByteBpe::load(folder);
  EXPECT_EQ(bpe.size(), 8000);
  EXPECT_EQ(bpe.end_of_text(), 0);
  int64_t lines = 0;
  EXPECT_EQ(differences(bpe, folder / "single.jsonl", lines), 0);
  EXPECT_EQ(lines, 975);
  BpeTable foil = bpe.table();
  std::reverse(foil.merges.begin(), foil.merges.begin() + 500);

  EXPECT_GT(differences(ByteBpe(foil), folder / "single.jsonl", lines), 0) << "the foil: other merges";
}

}  // namespace
}  // namespace syncopate::text
