#include "syncopate/corpora/wordnet/nouns.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/text_task.h"
#include "syncopate/corpora/wordnet/wordnet.h"

namespace syncopate::corpora {
namespace {

/// Blank-separated fields of a line, one after the other.
class Fields {
 public:
  Fields(std::string_view line, const std::string& where) : rest_(line), where_(where) {}

  std::string_view next() {
    const size_t end = rest_.find(' ');
    const std::string_view field = rest_.substr(0, end);
    if (field.empty()) refuse();
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    return field;
  }

  int64_t number(int base) {
    const std::string_view field = next();
    int64_t value = 0;
    const auto [end, fault] = std::from_chars(field.data(), field.data() + field.size(), value, base);
    if (fault != std::errc{} || end != field.data() + field.size() || value < 0) refuse();
    return value;
  }

  [[noreturn]] void refuse() const {
    throw DataError(
        "{}: not a WordNet synset (offset, file number, n, words, pointers, | definition); reinstall "
        "wordnet-base or check the file",
        where_);
  }

 private:
  std::string_view rest_;
  const std::string& where_;
};

/// The text up to the first example: "a member ...; occurs in many breeds; \"the dog barked\"".
std::string_view without_examples(std::string_view gloss) {
  gloss = trim(gloss);
  if (const size_t quote = gloss.find("; \""); quote != gloss.npos) gloss = gloss.substr(0, quote);
  return trim(gloss);
}

struct Line {
  Noun noun;
  int64_t offset = 0;
  std::vector<int64_t> targets;  ///< offsets of the hypernyms
};

/// "02084071 05 n 03 dog 0 ... 023 @ 02083346 n 0000 ... | definition": the number of words is hexadecimal.
Line read_line(std::string_view text, const std::string& where) {
  const size_t bar = text.find(" | ");
  Fields fields(text.substr(0, bar), where);
  if (bar == text.npos) fields.refuse();
  Line line;
  const std::string_view offset = text.substr(0, text.find(' '));
  line.offset = fields.number(10);
  line.noun.key = stable_hash(offset);
  fields.number(10);
  if (fields.next() != "n") fields.refuse();
  for (int64_t words = fields.number(16); words > 0; --words) {
    std::string word(fields.next());
    std::replace(word.begin(), word.end(), '_', ' ');
    line.noun.words.push_back(std::move(word));
    fields.next();
  }
  for (int64_t pointers = fields.number(10); pointers > 0; --pointers) {
    const std::string_view symbol = fields.next();
    const int64_t target = fields.number(10);
    const std::string_view part_of_speech = fields.next();
    fields.next();
    if (symbol == "@" && part_of_speech == "n") line.targets.push_back(target);
  }
  line.noun.definition = without_examples(text.substr(bar + 3));
  if (line.noun.words.empty() || line.noun.definition.empty()) fields.refuse();
  return line;
}

std::filesystem::path noun_file(const std::filesystem::path& path) {
  const std::filesystem::path source = path.empty() ? std::filesystem::path(kWordNetFolder) : path;
  std::error_code unreadable;  // read_file says why
  if (std::filesystem::is_regular_file(source, unreadable)) return source;
  require_wordnet_file(path, "data.noun");
  return source / "data.noun";
}

}  // namespace

std::vector<Noun> read_nouns(const std::filesystem::path& path) {
  const std::filesystem::path file = noun_file(path);
  const std::string text = read_file(file, "WordNet file");
  std::vector<Noun> nouns;
  std::vector<std::vector<int64_t>> targets;
  std::unordered_map<int64_t, int64_t> by_offset;
  int64_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (line.starts_with("  ") || trim(line).empty()) continue;  // the licence
    const std::string where = fmt::format("{}:{}", file.string(), number);
    Line read = read_line(line, where);
    if (!by_offset.emplace(read.offset, static_cast<int64_t>(nouns.size())).second) {
      throw DataError("{}: the synset {:08} comes twice; reinstall wordnet-base or check the file", where,
                      read.offset);
    }
    nouns.push_back(std::move(read.noun));
    targets.push_back(std::move(read.targets));
  }
  for (size_t i = 0; i < nouns.size(); ++i) {
    for (const int64_t target : targets[i]) {
      const auto found = by_offset.find(target);
      if (found == by_offset.end() || found->second == static_cast<int64_t>(i)) continue;
      nouns[i].kinds_of.push_back(found->second);
      nouns[static_cast<size_t>(found->second)].kinds.push_back(static_cast<int64_t>(i));
    }
  }
  return nouns;
}

std::string with_article(const std::string& word) {
  const char first = word.empty() ? 'x' : word.front();
  if (first >= 'A' && first <= 'Z') return word;
  return (std::string_view("aeiou").find(first) != std::string_view::npos ? "an " : "a ") + word;
}

}  // namespace syncopate::corpora
