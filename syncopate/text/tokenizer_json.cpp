#include "syncopate/text/tokenizer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"

namespace syncopate::text {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string_view>;

/// A part of the file, with its place for errors ("model", "pre_tokenizer").
class Part {
 public:
  Part(const Json& value, std::string file, std::string name)
      : value_(value), file_(std::move(file)), name_(std::move(name)) {}

  const Json& json() const { return value_; }
  bool empty() const { return value_.is_null(); }

  /// The member called `key`; null where there is none.
  Part operator[](const char* key) const {
    static const Json kNone;
    const auto found = value_.is_object() ? value_.find(key) : value_.end();
    const bool there = value_.is_object() && found != value_.end();
    return {there ? *found : kNone, file_, name_.empty() ? key : name_ + "." + key};
  }

  std::string type() const {
    if (empty()) return "null";
    const Part type = (*this)["type"];
    return type.json().is_string() ? type.json().get<std::string>() : "without a type";
  }

  [[noreturn]] void refuse() const {
    const std::string shown = value_.is_object() ? type() : value_.dump(-1, ' ', true).substr(0, 60);
    throw DataError(
        "{}: not supported: {} {}; BERT's WordPiece and GPT-2's byte-level BPE are, as BertTokenizerFast and "
        "GPT2TokenizerFast save them",
        file_, name_, shown);
  }

  void require_type(const Names& types) const {
    if (std::find(types.begin(), types.end(), type()) == types.end()) refuse();
  }

  /// Refuses any other value.
  void require(const Json& value) const {
    if (value_ != value) refuse();
  }
  void require_or_none(const Json& value) const {
    if (!empty()) require(value);
  }

  bool flag(bool otherwise) const {
    if (empty()) return otherwise;
    if (!value_.is_boolean()) refuse();
    return value_.get<bool>();
  }

  const std::string& file() const { return file_; }

 private:
  const Json& value_;
  std::string file_, name_;
};

Json read_json(const std::filesystem::path& path) {
  Json json = Json::parse(read_file(path, "tokenizer"), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    throw DataError("{} is not a JSON object; give the tokenizer.json of a model", path.string());
  return json;
}

/// The model's words together with the added ones, of which only those in `known` can be kept whole in a
/// text.
std::vector<std::string> words_of(const Part& file, const Names& known, bool strips_matter) {
  Json numbers = file["model"]["vocab"].json();
  const Part added = file["added_tokens"];
  for (size_t i = 0; added.json().is_array() && i < added.json().size(); ++i) {
    const Part token(added.json()[i], file.file(), "added token");
    const Json& content = token["content"].json();
    if (!content.is_string() ||
        std::find(known.begin(), known.end(), content.get<std::string>()) == known.end())
      token["content"].refuse();
    token["single_word"].require_or_none(false);
    if (strips_matter) {
      token["lstrip"].require_or_none(false);
      token["rstrip"].require_or_none(false);
    }
    if (!numbers.is_object()) continue;
    const Json& number = token["id"].json();
    const auto [place, fresh] = numbers.emplace(content.get<std::string>(), number);
    if (!fresh && *place != number) token["id"].refuse();
  }
  return words_by_number(numbers, file.file());
}

std::pair<std::string, std::string> merge_of(const Json& merge, const Part& merges) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  const std::string text = merge.is_string() ? merge.get<std::string>() : "";
  const size_t blank = text.find(' ');
  if (blank == 0 || blank == text.npos || text.find(' ', blank + 1) != text.npos || blank + 1 == text.size())
    throw DataError("{}: a merge is two words, but one is {}; fetch the file again", merges.file(),
                    merge.dump(-1, ' ', true).substr(0, 60));
  return {text.substr(0, blank), text.substr(blank + 1)};
}

}  // namespace

std::vector<std::string> words_by_number(const Json& numbers, const std::string& where) {
  if (!numbers.is_object() || numbers.empty())
    throw DataError("{} does not hold an object of words and their numbers; fetch the file again", where);
  std::vector<const std::string*> by_number(numbers.size(), nullptr);
  for (const auto& [word, number] : numbers.items()) {
    const bool fits = number.is_number_unsigned() && number.get<uint64_t>() < by_number.size();
    if (!fits) {
      throw DataError("{}: the word \"{}\" has {}, but {} words are numbered 0 to {}", where,
                      word.substr(0, 60), number.is_number() ? "the number " + number.dump() : "no number",
                      by_number.size(), by_number.size() - 1);
    }
    const std::string*& place = by_number[number.get<size_t>()];
    if (place != nullptr) {
      throw DataError("{}: the words \"{}\" and \"{}\" have the same number {}; give each its own", where,
                      place->substr(0, 60), word.substr(0, 60), number.get<size_t>());
    }
    place = &word;
  }
  std::vector<std::string> ordered;
  ordered.reserve(by_number.size());
  for (const std::string* word : by_number) ordered.push_back(*word);
  return ordered;
}

WordPieceTable read_wordpiece_json(const std::filesystem::path& path) {
  const Json json = read_json(path);
  const Part file(json, path.string(), "");
  const Part model = file["model"], normalizer = file["normalizer"];
  model.require_type({"WordPiece"});
  model["unk_token"].require_or_none("[UNK]");
  model["continuing_subword_prefix"].require_or_none("##");
  model["max_input_chars_per_word"].require_or_none(100);
  normalizer.require_type({"BertNormalizer"});
  normalizer["clean_text"].require_or_none(true);
  file["pre_tokenizer"].require_type({"BertPreTokenizer"});
  const Part processor = file["post_processor"];
  processor.require_type({"null", "BertProcessing", "TemplateProcessing"});
  if (processor.type() == "TemplateProcessing" && processor["special_tokens"].json().is_object()) {
    for (const auto& [name, token] : processor["special_tokens"].json().items()) {
      if (name == "[CLS]" || name == "[SEP]") continue;
      const Json shown = name;
      Part(shown, path.string(), "the post-processor's token").refuse();
    }
  }
  WordPieceTable table;
  table.rules.lower_case = normalizer["lowercase"].flag(true);
  table.rules.strip_accents = normalizer["strip_accents"].flag(table.rules.lower_case);
  table.rules.split_cjk = normalizer["handle_chinese_chars"].flag(true);
  table.words = words_of(file, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, false);
  return table;
}

BpeTable read_bpe_json(const std::filesystem::path& path) {
  const Json json = read_json(path);
  const Part file(json, path.string(), "");
  const Part model = file["model"], splitter = file["pre_tokenizer"];
  model.require_type({"BPE"});
  model["dropout"].require(nullptr);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) model[key].require_or_none("");
  for (const char* key : {"byte_fallback", "ignore_merges"}) model[key].require_or_none(false);
  file["normalizer"].require(nullptr);
  splitter.require_type({"ByteLevel"});
  splitter["add_prefix_space"].require(false);
  splitter["use_regex"].require_or_none(true);
  file["post_processor"].require_type({"null", "ByteLevel"});
  BpeTable table{.words = words_of(file, {kEndOfText}, true), .merges = {}};
  const Part merges = model["merges"];
  if (!merges.json().is_array()) merges.refuse();
  table.merges.reserve(merges.json().size());
  for (const Json& merge : merges.json()) table.merges.push_back(merge_of(merge, merges));
  return table;
}

}  // namespace syncopate::text
