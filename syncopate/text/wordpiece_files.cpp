// WordPiece's way from and to a folder in Hugging Face's layout.
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/text/tokenizer_json.h"
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

/// `rules` as tokenizer settings change them, if there are any: transformers lets these win too.
TextRules changed_by(const std::filesystem::path& path, TextRules rules) {
  std::error_code unreadable;  // taken for absent
  if (!std::filesystem::exists(path, unreadable)) return rules;
  const std::string text = read_file(path, "tokenizer settings");
  const nlohmann::json settings = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!settings.is_object()) {
    throw DataError("{} is not a JSON object; repair it, or remove it for a lower-case vocabulary",
                    path.string());
  }
  if (const auto lower_case = flag(settings, "do_lower_case", path)) {
    if (*lower_case != rules.lower_case) rules.strip_accents = *lower_case;
    rules.lower_case = *lower_case;
  }
  rules.strip_accents = flag(settings, "strip_accents", path).value_or(rules.strip_accents);
  rules.split_cjk = flag(settings, "tokenize_chinese_chars", path).value_or(rules.split_cjk);
  return rules;
}

}  // namespace

WordPiece WordPiece::load(const std::filesystem::path& path) {
  std::error_code unreadable;  // read_file says why
  std::filesystem::path file = path;
  if (std::filesystem::is_directory(path, unreadable)) {
    const bool lines = std::filesystem::exists(path / "vocab.txt", unreadable) ||
                       !std::filesystem::exists(path / kTokenizerJson, unreadable);
    file = path / (lines ? "vocab.txt" : kTokenizerJson);
  }
  WordPieceTable table = file.extension() == ".json"
                             ? read_wordpiece_json(file)
                             : WordPieceTable{.words = load_vocabulary(file), .rules = rules_for(true)};
  return WordPiece(std::move(table.words),
                   changed_by(file.parent_path() / "tokenizer_config.json", table.rules), file.string());
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
