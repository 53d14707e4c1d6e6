#pragma once

#include <string>
#include <vector>

#include "syncopate/corpora/corpus_files.h"
#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

/// Documents to learn language from.
struct Corpus {
  std::vector<std::string> train;  ///< empty unless loaded for training
  std::vector<std::string> test;
  std::vector<std::string> notes;  ///< what was chosen or left out, one sentence each, for the user
};

/// Loads documents. Files are .txt, .text, .tokens, .raw, .csv, .tsv and .jsonl, each plain or with .gz; one
/// that is named may be called anything. In a folder, names with the word train,
/// or dev, valid or validation, or test, are the splits (valid before test); without a test split a fixed
/// tenth of the documents, by their hash, is held out. One file is used whole, or parted the same way when
/// training. Project Gutenberg's headers and footers are left out, as are empty documents. "auto" parts at
/// blank lines where there are some between lines of text. Throws ConfigError for another `documents`,
/// DataError with file and line.
Corpus load_corpus(const CorpusSource& source, Purpose purpose);

}  // namespace syncopate::corpora
