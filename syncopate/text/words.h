#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace syncopate::text {

/// How a text becomes words.
struct TextRules {
  bool lower_case = true;
  bool strip_accents = true;  ///< decompose (NFD) and drop non-spacing marks
  bool split_cjk = true;      ///< each ideograph is a word
  bool operator==(const TextRules&) const = default;
};

/// BERT's rules for a vocabulary that is (not) `lower_case`.
inline TextRules rules_for(bool lower_case) { return {lower_case, lower_case, true}; }

/// Calls `word` for each word of `text` in order: clean-up, ideographs apart, accents, lower case, split at
/// white space, each punctuation character apart. The view given holds valid UTF-8, is never empty and lives
/// for the call alone. Any bytes are a text: what is not UTF-8 counts as U+FFFD, which the clean-up drops.
void for_each_word(std::string_view text, const TextRules& rules,
                   const std::function<void(std::string_view)>& word);

/// The bytes begin..end-1 of a text, whole characters.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

/// As for_each_word, with the place in `text` of the character that each byte of the word comes from. Begins
/// and ends never go back; a mark that was dropped belongs to the character before it.
void for_each_placed_word(std::string_view text, const TextRules& rules,
                          const std::function<void(std::string_view, std::span<const ByteRange>)>& word);

}  // namespace syncopate::text
