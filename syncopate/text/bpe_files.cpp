// ByteBpe's way from and to a folder in Hugging Face's layout.
#include <nlohmann/json.hpp>
#include <system_error>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/text/bpe.h"
#include "syncopate/text/tokenizer_json.h"

namespace syncopate::text {
namespace {

constexpr std::string_view kHeader = "#version";

std::vector<std::string> read_words(const std::filesystem::path& path) {
  const std::string text = read_file(path, "vocabulary");
  nlohmann::json words;
  try {
    words = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw DataError("{} is not JSON ({}); give the vocab.json of a byte-level BPE", path.string(),
                    error.what());
  }
  return words_by_number(words, path.string());
}

std::vector<std::pair<std::string, std::string>> read_merges(const std::filesystem::path& path,
                                                             int64_t& first_line) {
  const std::string text = read_file(path, "merges");
  std::vector<std::string_view> lines = split(text, '\n');
  while (!lines.empty() && trim(lines.back()).empty()) lines.pop_back();
  const size_t start = !lines.empty() && lines[0].starts_with(kHeader) ? 1 : 0;
  first_line = static_cast<int64_t>(start) + 1;
  std::vector<std::pair<std::string, std::string>> merges;
  for (size_t i = start; i < lines.size(); ++i) {
    std::string_view line = lines[i];
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t blank = line.find(' ');
    const bool two =
        blank != line.npos && blank > 0 && blank + 1 < line.size() && line.find(' ', blank + 1) == line.npos;
    if (!two) {
      throw DataError("{}:{}: a merge is two words with one blank between, but the line is \"{}\"",
                      path.string(), i + 1, line.substr(0, 60));
    }
    merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  return merges;
}

}  // namespace

ByteBpe ByteBpe::load(const std::filesystem::path& path) {
  std::error_code unreadable;  // read_file says why
  const bool folder = std::filesystem::is_directory(path, unreadable);
  const std::filesystem::path words = folder ? path / "vocab.json" : path;
  const std::filesystem::path one_file = folder ? path / kTokenizerJson : path;
  const bool parted = folder ? std::filesystem::exists(words, unreadable) : path.filename() != kTokenizerJson;
  if (!parted && std::filesystem::exists(one_file, unreadable))
    return ByteBpe(read_bpe_json(one_file), {.words = one_file.string(), .merges = one_file.string()});
  const std::filesystem::path merges = words.parent_path() / "merges.txt";
  BpeOrigin origin{.words = words.string(), .merges = merges.string()};
  BpeTable table{.words = read_words(words), .merges = read_merges(merges, origin.first_line)};
  return ByteBpe(std::move(table), origin);
}

void ByteBpe::save(const std::filesystem::path& folder) const {
  make_folder(folder);
  std::string text = "{";  // by hand: an ordered object looks for each new word among all before it
  for (size_t i = 0; i < table_.words.size(); ++i) {
    text += fmt::format("{}{}:{}", i == 0 ? "" : ",", nlohmann::json(table_.words[i]).dump(), i);
  }
  write_file_atomically(folder / "vocab.json", text + "}");
  std::string merges = std::string(kHeader) + ": 0.2\n";
  for (const auto& [left, right] : table_.merges) merges.append(left).append(" ").append(right).append("\n");
  write_file_atomically(folder / "merges.txt", merges);
  const nlohmann::ordered_json settings{{"tokenizer_class", "GPT2Tokenizer"}};
  write_file_atomically(folder / "tokenizer_config.json", settings.dump(2) + "\n");
}

}  // namespace syncopate::text
