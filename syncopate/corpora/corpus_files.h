#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/corpora/documents.h"
#include "syncopate/corpora/text_file.h"
#include "syncopate/corpora/text_task.h"

// What of a corpus is read from which files, and how its test split is chosen where it has none.
namespace syncopate::corpora {

/// Where documents are and how to tell them apart.
struct CorpusSource {
  std::filesystem::path path{};    ///< a text file, a table or a folder of them; empty: WordNet's definitions
  std::string documents = "auto";  ///< "line": one a line; "blank": parted by blank lines; "auto": as found
  std::string text{};              ///< the column of a table; empty: "text"
  FileForm form{};
};

struct CorpusFiles {
  std::vector<std::filesystem::path> train, test;
  bool hold_out = false;           ///< a tenth of the documents of `train` is the test split
  std::vector<std::string> notes;  ///< what was chosen, one sentence each, for the user
};

/// The files of a corpus that has a path, as load_corpus reads them. Throws ConfigError for a `documents`
/// that is none, DataError where there are no files.
CorpusFiles find_corpus_files(const CorpusSource& source, Purpose purpose);

/// Gives `use` the documents of the files, one after the other, and returns how many; adds to `notes` what
/// was left out of them.
int64_t for_each_document(const std::vector<std::filesystem::path>& files, const CorpusSource& source,
                          std::vector<std::string>& notes, const UseDocument& use);

/// What decides whether a document is held out.
uint64_t test_key(std::string_view document);
/// Which documents are, one flag for each. Throws DataError where that leaves none to train on.
std::vector<char> held_out_for_test(const std::vector<uint64_t>& keys, const CorpusSource& source,
                                    Purpose purpose, std::vector<std::string>& notes);

}  // namespace syncopate::corpora
