#include "syncopate/text/tokenizer_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "syncopate/text/bpe_training.h"
#include "syncopate/text/vocabulary.h"
#include "syncopate/text/wordpiece.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::text {
namespace {

using syncopate::test::TempDir;
using syncopate::test::write_text;
using Json = nlohmann::json;

Json added(const std::string& word, int64_t id) {
  return {{"id", id},        {"content", word},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

Json numbered(const std::vector<std::string>& words) {
  Json numbers = Json::object();
  for (size_t i = 0; i < words.size(); ++i) numbers[words[i]] = i;
  return numbers;
}

/// What BertTokenizerFast saves.
Json wordpiece_json(const std::vector<std::string>& words, bool lower_case) {
  Json tokens = Json::array();
  for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
    tokens.push_back(added(special, std::find(words.begin(), words.end(), special) - words.begin()));
  return {{"version", "1.0"},
          {"truncation", {{"max_length", 128}}},
          {"padding", nullptr},
          {"added_tokens", tokens},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", true},
            {"strip_accents", nullptr},
            {"lowercase", lower_case}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"special_tokens", {{"[CLS]", Json::object()}, {"[SEP]", Json::object()}}}}},
          {"decoder", {{"type", "WordPiece"}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", numbered(words)}}}};
}

/// What GPT2TokenizerFast saves; merges as pairs, or as one string each, as before 2024.
Json bpe_json(const BpeTable& table, bool pairs) {
  Json merges = Json::array();
  for (const auto& [left, right] : table.merges)
    merges.push_back(pairs ? Json{left, right} : Json(left + " " + right));
  Json tokens = Json::array();
  const auto end = std::find(table.words.begin(), table.words.end(), kEndOfText);
  if (end != table.words.end()) tokens.push_back(added(*end, end - table.words.begin()));
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", tokens},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
          {"post_processor", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", ""},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", numbered(table.words)},
            {"merges", merges}}}};
}

class TokenizerJson : public testing::Test {
 protected:
  std::filesystem::path write(const Json& json) {
    write_text(folder_ / kTokenizerJson, json.dump());
    return folder_.path();
  }
  std::string wordpiece_fault(const Json& json) {
    return test::sentence<DataError>([&] { WordPiece::load(write(json)); });
  }
  std::string bpe_fault(const Json& json) {
    return test::sentence<DataError>([&] { ByteBpe::load(write(json)); });
  }
  TempDir folder_;
};

const std::vector<std::string>& words() {
  static const std::vector<std::string> kWords = test::vocabulary_of({"Un", "un", "##able", "cafe", "café"});
  return kWords;
}

TEST_F(TokenizerJson, HoldsAWordPiece) {
  const WordPiece tokenizer = WordPiece::load(write(wordpiece_json(words(), true)));
  EXPECT_EQ(tokenizer.words(), words());
  EXPECT_EQ(tokenizer.rules(), rules_for(true));
  const WordPiece cased = WordPiece::load(write(wordpiece_json(words(), false)) / kTokenizerJson);
  EXPECT_EQ(cased.rules(), rules_for(false));
  EXPECT_NE(cased.encode("Unable café"), tokenizer.encode("Unable café"));
  Json accents = wordpiece_json(words(), true);
  accents["normalizer"]["strip_accents"] = false;
  accents["normalizer"]["handle_chinese_chars"] = false;
  EXPECT_EQ(WordPiece::load(write(accents)).rules(), (TextRules{true, false, false}));
  write_text(folder_ / "tokenizer_config.json", "{\"do_lower_case\": false}");
  EXPECT_EQ(WordPiece::load(folder_.path()).rules(), (TextRules{false, false, false}))
      << "as transformers, which lets the settings win";
  save_vocabulary(folder_ / "vocab.txt", test::vocabulary_of({"other"}));
  EXPECT_EQ(WordPiece::load(folder_.path()).words().back(), "other") << "a vocab.txt counts first";
}

TEST_F(TokenizerJson, TakesSpecialWordsFromAddedTokens) {
  Json json = wordpiece_json(words(), true);
  json["model"]["vocab"].erase("[MASK]");
  EXPECT_EQ(WordPiece::load(write(json)).words(), words());
  json["model"]["vocab"]["[MASK]"] = 99;
  EXPECT_NE(wordpiece_fault(json), "") << "two numbers for one word";
}

TEST_F(TokenizerJson, RefusesWhatWordPieceCannotDo) {
  const Json sound = wordpiece_json(words(), true);
  EXPECT_EQ(wordpiece_fault(sound), "");
  const auto says = [&](const char* pointer, const Json& value, const std::string& expected) {
    Json json = sound;
    json[Json::json_pointer(pointer)] = value;
    EXPECT_NE(wordpiece_fault(json).find("not supported: " + expected + ";"), std::string::npos)
        << wordpiece_fault(json);
  };
  says("/model/type", "Unigram", "model Unigram");
  says("/normalizer", {{"type", "NFC"}}, "normalizer NFC");
  says("/normalizer", nullptr, "normalizer null");
  says("/normalizer/clean_text", false, "normalizer.clean_text false");
  says("/pre_tokenizer", {{"type", "Whitespace"}}, "pre_tokenizer Whitespace");
  says("/post_processor", {{"type", "RobertaProcessing"}}, "post_processor RobertaProcessing");
  says("/post_processor/special_tokens/<s>", Json::object(), "the post-processor's token \"<s>\"");
  says("/model/unk_token", "<unk>", "model.unk_token \"<unk>\"");
  says("/model/max_input_chars_per_word", 200, "model.max_input_chars_per_word 200");
  says("/added_tokens/5", added("<user>", 11), "added token.content \"<user>\"");
  Json wordless = sound;
  wordless["model"]["vocab"] = 3;
  EXPECT_NE(wordpiece_fault(wordless).find("does not hold an object of words"), std::string::npos);
}

TEST_F(TokenizerJson, HoldsAByteLevelBpe) {
  const BpeTable table = train_bpe({"the cat and the hat and the café"}, {.size = 270});
  for (const bool pairs : {true, false}) {
    const ByteBpe bpe = ByteBpe::load(write(bpe_json(table, pairs)));
    EXPECT_EQ(bpe.table().words, table.words);
    EXPECT_EQ(bpe.table().merges, table.merges);
    EXPECT_EQ(bpe.end_of_text(), ByteBpe(table).end_of_text());
  }
  EXPECT_EQ(ByteBpe::load(folder_ / kTokenizerJson).table().words, table.words);
  const Json sound = bpe_json(table, true);
  const auto says = [&](const char* pointer, const Json& value, const std::string& expected) {
    Json json = sound;
    json[Json::json_pointer(pointer)] = value;
    EXPECT_NE(bpe_fault(json).find(expected), std::string::npos) << bpe_fault(json);
  };
  says("/model/type", "WordPiece", "not supported: model WordPiece");
  says("/normalizer", {{"type", "NFC"}}, "not supported: normalizer NFC");
  says("/pre_tokenizer", {{"type", "Metaspace"}}, "not supported: pre_tokenizer Metaspace");
  says("/pre_tokenizer/add_prefix_space", true, "not supported: pre_tokenizer.add_prefix_space true");
  says("/model/byte_fallback", true, "not supported: model.byte_fallback true");
  says("/model/dropout", 0.1, "not supported: model.dropout 0.1");
  says("/model/merges/0", "abc", "a merge is two words, but one is \"abc\"");
  says("/added_tokens/1", added("<pad>", 270), "not supported: added token.content \"<pad>\"");
  write_text(folder_ / kTokenizerJson, "[]");
  EXPECT_THROW(ByteBpe::load(folder_.path()), DataError);
}

/// How many of the oracle's texts become other ids.
template <typename Tokenizer>
int64_t differences(const Tokenizer& tokenizer, const std::filesystem::path& oracle) {
  int64_t count = 0;
  std::ifstream file(oracle);
  for (std::string line; std::getline(file, line);) {
    const Json expected = Json::parse(line);
    count += Json(tokenizer.encode(expected["text"].get<std::string>())) != expected["ids"];
  }
  return count;
}

TEST(TokenizerJsonOracle, MatchesTransformersOnEveryText) {
  SYNCOPATE_NEED_SHARED(cased, "oracles/wordpiece-cased");
  SYNCOPATE_NEED_SHARED(bpe, "oracles/bpe");
  const TempDir folder;
  write_text(folder / kTokenizerJson, wordpiece_json(load_vocabulary(cased / "vocab.txt"), false).dump());
  EXPECT_EQ(differences(WordPiece::load(folder.path()), cased / "single.jsonl"), 0);
  write_text(folder / kTokenizerJson, wordpiece_json(load_vocabulary(cased / "vocab.txt"), true).dump());
  EXPECT_GT(differences(WordPiece::load(folder.path()), cased / "single.jsonl"), 0) << "the foil";
  BpeTable table = ByteBpe::load(bpe).table();
  write_text(folder / kTokenizerJson, bpe_json(table, true).dump());
  EXPECT_EQ(differences(ByteBpe::load(folder.path()), bpe / "single.jsonl"), 0);
  std::reverse(table.merges.begin(), table.merges.begin() + 500);
  write_text(folder / kTokenizerJson, bpe_json(table, true).dump());
  EXPECT_GT(differences(ByteBpe::load(folder.path()), bpe / "single.jsonl"), 0) << "the foil";
}

}  // namespace
}  // namespace syncopate::text
