#include "syncopate/text/vocabulary.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/text/pair_joins.h"
#include "syncopate/text/words.h"

namespace syncopate::text {
namespace {

constexpr std::string_view kSpecials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
constexpr size_t kLongestSpelled = 100;  // longer ones are [UNK] to the tokenizer, so they teach nothing

/// `word` as `c`, `##c`, ...
std::vector<std::string> characters_of(std::string_view word) {
  std::vector<std::string> pieces;
  for (size_t start = 0; start < word.size();) {
    size_t end = start + 1;
    while (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) ++end;
    pieces.push_back(std::string(start == 0 ? "" : "##").append(word.substr(start, end - start)));
    start = end;
  }
  return pieces;
}

class Trainer {
 public:
  explicit Trainer(const VocabularyOptions& options) : options_(options) {
    for (const std::string_view special : kSpecials) number_of(std::string(special));
  }

  std::vector<std::string> run(const WordCounts& counted) {
    take_characters({counted.begin(), counted.end()});  // sorted, since everything after depends on the order
    PairJoins joins(std::move(words_), options_.min_count);
    while (has_room()) {
      const auto pair = joins.take_best();
      if (!pair) break;
      joins.join(*pair, number_of(vocabulary_[static_cast<size_t>(pair->left)] +
                                  vocabulary_[static_cast<size_t>(pair->right)].substr(2)));
    }
    return std::move(vocabulary_);
  }

 private:
  bool has_room() const { return static_cast<int64_t>(vocabulary_.size()) < options_.size; }

  int32_t number_of(const std::string& piece) {
    const auto [place, fresh] = numbers_.emplace(piece, static_cast<int32_t>(vocabulary_.size()));
    if (fresh) vocabulary_.push_back(piece);
    return place->second;
  }

  /// Puts the characters into the vocabulary, the most frequent ones if there is no room for all, and spells
  /// the words with them; a word with a character that stayed out is left out.
  void take_characters(const std::map<std::string, int64_t>& counts) {
    if (counts.empty())
      throw DataError("the texts hold no words, so no vocabulary can be trained; check the data");
    std::map<std::string, int64_t> seen;
    for (const auto& [word, count] : counts) {
      for (const std::string& piece : characters_of(word)) seen[piece] += count;
    }
    std::vector<std::pair<int64_t, std::string>> ranked;
    for (const auto& [piece, count] : seen) {
      if (count >= options_.min_count) ranked.emplace_back(-count, piece);
    }
    std::sort(ranked.begin(), ranked.end());
    const auto room = static_cast<size_t>(options_.size) - std::size(kSpecials);
    if (ranked.size() > room) ranked.resize(room);
    std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    for (const auto& [count, piece] : ranked) number_of(piece);
    for (const auto& [word, count] : counts) {
      const std::vector<std::string> spelled = characters_of(word);
      if (spelled.size() > kLongestSpelled) continue;
      SpelledWord known{.pieces = {}, .count = count};
      for (const std::string& piece : spelled) {
        const auto number = numbers_.find(piece);
        if (number == numbers_.end()) break;
        known.pieces.push_back(number->second);
      }
      if (known.pieces.size() == spelled.size()) words_.push_back(std::move(known));
    }
  }

  const VocabularyOptions options_;
  std::vector<std::string> vocabulary_;
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<SpelledWord> words_;
};

}  // namespace

void count_words(std::string_view text, const VocabularyOptions& options, WordCounts& counts) {
  const std::function<void(std::string_view)> count = [&](std::string_view word) { counts.add(word); };
  for_each_word(text, rules_for(options.lower_case), count);
}

std::vector<std::string> train_vocabulary(const std::vector<std::string_view>& texts,
                                          const VocabularyOptions& options) {
  WordCounts counts;
  for (const std::string_view text : texts) count_words(text, options, counts);
  return vocabulary_of_words(counts, options);
}

std::vector<std::string> vocabulary_of_words(const WordCounts& counts, const VocabularyOptions& options) {
  if (options.size <= static_cast<int64_t>(std::size(kSpecials))) {
    throw ConfigError("the vocabulary's size must be more than the {} special words, got {}",
                      std::size(kSpecials), options.size);
  }
  return Trainer(options).run(counts);
}

std::vector<std::string> load_vocabulary(const std::filesystem::path& path) {
  const std::string text = read_file(path, "vocabulary");
  std::vector<std::string> words;
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    words.emplace_back(line);
  }
  while (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

void save_vocabulary(const std::filesystem::path& path, const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(word).append("\n");
  write_file_atomically(path, text);
}

}  // namespace syncopate::text
