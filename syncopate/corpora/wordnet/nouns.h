#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace syncopate::corpora {

/// A noun synset of WordNet.
struct Noun {
  uint64_t key = 0;                ///< stable_hash of its offset: decides splits, whatever the seed
  std::vector<std::string> words;  ///< one or more, blanks for underscores
  std::string definition;          ///< without the examples that follow it
  std::vector<int64_t> kinds_of;   ///< its hypernyms (pointers `@`), by number in the list
  std::vector<int64_t> kinds;      ///< its hyponyms: the same pointers backwards
};

/// All synsets of a data.noun in the file's order. `path`: that file, or a folder that holds it; empty:
/// Debian's. Pointers to synsets that the file lacks are left out. Throws DataError with file and line.
std::vector<Noun> read_nouns(const std::filesystem::path& path);

/// "a dog", "an apple"; a name (capital letter) stands alone.
std::string with_article(const std::string& word);

}  // namespace syncopate::corpora
