#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/text/word_counts.h"

namespace syncopate::text {

struct VocabularyOptions {
  int64_t size = 8000;     ///< at most so many words, the five special ones included
  bool lower_case = true;  ///< lower-case the texts and strip their accents
  int64_t min_count = 2;   ///< characters and pairs seen less often are left out
};

/// A WordPiece vocabulary learned from texts: [PAD] [UNK] [CLS] [SEP] [MASK], the characters (as `c` at the
/// start of words and `##c` inside), then what the most frequent pair of neighbouring pieces joins to, again
/// and again. Ties go to the pair that comes first in the vocabulary, so the same texts and options give the
/// same words on every machine. Smaller than `size` when the texts offer no more. Throws ConfigError for a
/// size without room for a character, DataError when the texts hold no words.
std::vector<std::string> train_vocabulary(const std::vector<std::string_view>& texts,
                                          const VocabularyOptions& options);

/// Adds a text's words to what train_vocabulary learns from where the texts are not all at hand.
void count_words(std::string_view text, const VocabularyOptions& options, WordCounts& counts);
std::vector<std::string> vocabulary_of_words(const WordCounts& counts, const VocabularyOptions& options);

/// The lines of a vocab.txt; empty lines at its end are not words. Throws DataError when it cannot be read.
std::vector<std::string> load_vocabulary(const std::filesystem::path& path);

/// One word a line. Throws DataError when it cannot be written.
void save_vocabulary(const std::filesystem::path& path, const std::vector<std::string>& words);

}  // namespace syncopate::text
