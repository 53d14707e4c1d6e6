#include "syncopate/text/bpe_training.h"

#include <array>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/text/bpe_words.h"
#include "syncopate/text/pair_joins.h"

namespace syncopate::text {
namespace {

// Runs this long are no words (rules of dashes, encoded files): joining within them teaches nothing.
constexpr size_t kLongestRun = 100;

}  // namespace

void count_bpe_words(std::string_view text, WordCounts& counts) {
  BpeWords words(text);
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word.size() <= kLongestRun) counts.add(word);
  }
}

BpeTable train_bpe(const std::vector<std::string_view>& texts, const BpeOptions& options) {
  WordCounts counts;
  for (const std::string_view text : texts) count_bpe_words(text, counts);
  return bpe_of_words(counts, options);
}

BpeTable bpe_of_words(const WordCounts& counts, const BpeOptions& options) {
  if (options.size < 257) {
    throw ConfigError("the vocabulary's size must be 257 or more (the 256 bytes and {}), got {}", kEndOfText,
                      options.size);
  }
  BpeTable table;
  std::array<int32_t, 256> byte_ids{};
  std::unordered_map<std::string, int32_t> numbers;
  const auto number_of = [&](const std::string& word) {
    const auto [place, fresh] = numbers.emplace(word, static_cast<int32_t>(table.words.size()));
    if (fresh) table.words.push_back(word);
    return place->second;
  };
  for (const uint8_t byte : bpe_byte_order()) byte_ids[byte] = number_of(bpe_character(byte));

  std::vector<SpelledWord> words;
  // Sorted, since everything after depends on the order.
  for (const auto& [word, count] : std::map<std::string_view, int64_t>(counts.begin(), counts.end())) {
    SpelledWord spelled{.pieces = {}, .count = count};
    for (const char byte : word) spelled.pieces.push_back(byte_ids[static_cast<unsigned char>(byte)]);
    words.push_back(std::move(spelled));
  }
  if (words.empty()) throw DataError("the texts are empty, so no vocabulary can be trained; check the data");

  // A word can be joined from two pairs, so a pair that was joined everywhere can come up again.
  std::set<std::pair<int32_t, int32_t>> joined;
  PairJoins joins(std::move(words), options.min_count);
  while (static_cast<int64_t>(table.words.size()) + 1 < options.size) {
    const auto pair = joins.take_best();
    if (!pair) break;
    const std::string left = table.words[static_cast<size_t>(pair->left)];
    const std::string right = table.words[static_cast<size_t>(pair->right)];
    joins.join(*pair, number_of(left + right));
    if (joined.emplace(pair->left, pair->right).second) table.merges.emplace_back(left, right);
  }
  number_of(std::string(kEndOfText));
  return table;
}

}  // namespace syncopate::text
