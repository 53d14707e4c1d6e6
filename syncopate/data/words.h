#pragma once

#include <functional>
#include <string_view>

namespace syncopate::data {

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

}  // namespace syncopate::data
