#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "syncopate/text/bpe.h"
#include "syncopate/text/word_counts.h"

namespace syncopate::text {

struct BpeOptions {
  int64_t size = 8000;    ///< at most so many words, the 256 bytes and <|endoftext|> included
  int64_t min_count = 2;  ///< pairs seen less often are not joined
};

/// A byte-level BPE learned from texts: the 256 bytes as GPT-2 numbers them, what the most frequent pair of
/// neighbours joins to, again and again, and <|endoftext|> last. Ties go to the pair that comes first in the
/// vocabulary, so the same texts and options give the same on every machine. Smaller than `size` when the
/// texts offer no more. Throws ConfigError for a size under 257, DataError when the texts are empty.
BpeTable train_bpe(const std::vector<std::string_view>& texts, const BpeOptions& options);

/// Adds a text's words to what train_bpe learns from where the texts are not all at hand.
void count_bpe_words(std::string_view text, WordCounts& counts);
BpeTable bpe_of_words(const WordCounts& counts, const BpeOptions& options);

}  // namespace syncopate::text
