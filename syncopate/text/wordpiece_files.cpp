// WordPiece's way from and to a folder in Hugging Face's layout.
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/text/vocabulary.h"
#include "syncopate/text/wordpiece.h"

namespace syncopate::text {
namespace {

/// A yes or no of the settings; nothing where it is absent or null.
std::optional<bool> flag(const nlohmann::json& settings, const char* name,
                         const std::filesystem::path& path) {
  const auto found = settings.find(name);
  if (found == settings.end() || found->is_null()) return std::nullopt;
  if (!found->is_boolean()) throw DataError("{}: {} must be true or false", path.string(), name);
  return found->get<bool>();
}

TextRules read_rules(const std::filesystem::path& path) {
  std::error_code unreadable;  // taken for absent
  if (!std::filesystem::exists(path, unreadable)) return rules_for(true);
  const std::string text = read_file(path, "tokenizer settings");
  const nlohmann::json settings = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!settings.is_object()) {
    throw DataError("{} is not a JSON object; repair it, or remove it for a lower-case vocabulary",
                    path.string());
  }
  TextRules rules = rules_for(flag(settings, "do_lower_case", path).value_or(true));
  rules.strip_accents = flag(settings, "strip_accents", path).value_or(rules.lower_case);
  rules.split_cjk = flag(settings, "tokenize_chinese_chars", path).value_or(true);
  return rules;
}

}  // namespace

WordPiece WordPiece::load(const std::filesystem::path& path) {
  std::error_code unreadable;  // read_file says why
  const std::filesystem::path file =
      std::filesystem::is_directory(path, unreadable) ? path / "vocab.txt" : path;
  return WordPiece(load_vocabulary(file), read_rules(file.parent_path() / "tokenizer_config.json"),
                   file.string());
}

void WordPiece::save(const std::filesystem::path& folder) const {
  make_folder(folder);
  save_vocabulary(folder / "vocab.txt", words_);
  const nlohmann::ordered_json settings{{"tokenizer_class", "BertTokenizer"},
                                        {"do_lower_case", rules_.lower_case},
                                        {"strip_accents", rules_.strip_accents},
                                        {"tokenize_chinese_chars", rules_.split_cjk}};
  write_file_atomically(folder / "tokenizer_config.json", settings.dump(2) + "\n");
}

}  // namespace syncopate::text
