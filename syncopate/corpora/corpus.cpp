#include "syncopate/corpora/corpus.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <iterator>
#include <system_error>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/notes.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/documents.h"
#include "syncopate/corpora/splits.h"
#include "syncopate/corpora/wordnet/wordnet.h"

namespace syncopate::corpora {
namespace {

using Paths = std::vector<std::filesystem::path>;

/// The files of a folder by what their names say.
struct Splits {
  Paths train, valid, test, other;
};

bool among(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Where a file belongs: whole words of its name decide, so that a Testament is not a test.
Paths& place_for(const std::filesystem::path& path, Splits& splits) {
  const std::string name = path.filename().string() + ".";
  std::string word;
  for (const char c : name) {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (among(word, {"train", "training"})) return splits.train;
    if (among(word, {"dev", "valid", "validation", "val"})) return splits.valid;
    if (word == "test") return splits.test;
    word.clear();
  }
  return splits.other;
}

Splits splits_of(const CorpusSource& source) {
  const Paths files = files_in(source.path, [](const std::filesystem::path& path) {
    return among(lower_ending(path), {".txt", ".text", ".tokens", ".raw", ".csv", ".tsv", ".jsonl"});
  });
  if (files.empty()) {
    refuse_parquet(source.path);
    throw DataError(
        "the folder {} holds no text files (.txt, .text, .tokens, .raw, .csv, .tsv or .jsonl, plain or with "
        ".gz); check the data path",
        source.path.string());
  }
  Splits splits;
  for (const auto& file : files) place_for(file, splits).push_back(file);
  return splits;
}

std::string names_of(const Paths& files) {
  if (files.size() > 3) return fmt::format("{} and {} more", files[0].filename().string(), files.size() - 1);
  std::string names;
  for (const auto& file : files) names += (names.empty() ? "" : ", ") + file.filename().string();
  return names;
}

uintmax_t bytes_in(const Paths& files) {
  uintmax_t bytes = 0;
  std::error_code unreadable;  // reading says why
  for (const auto& file : files) bytes += std::filesystem::file_size(file, unreadable);
  return bytes;
}

/// Says what was left out of files with Project Gutenberg's books.
std::string books_note(const std::string& files, const Documents& read) {
  const double share = 100 * static_cast<double>(read.dropped) / static_cast<double>(read.bytes);
  return fmt::format("{}: {} ({:.{}g} %) left out as headers and footers of {} by Project Gutenberg", files,
                     bytes_for_people(static_cast<double>(read.dropped)), share, share < 10 ? 2 : 3,
                     read.books == 1 ? "a book" : fmt::format("{} books", read.books));
}

std::vector<std::string> read_all(const Paths& files, const CorpusSource& source, Corpus& corpus) {
  std::vector<std::string> texts;
  Documents all;
  for (const auto& file : files) {
    Documents read = read_documents(file, source.documents, source.text, source.form);
    all.empty += read.empty;
    corpus.notes.insert(corpus.notes.end(), read.notes.begin(), read.notes.end());
    if (read.dropped > read.bytes / 10) {
      corpus.notes.push_back(warning(books_note(file.string(), read) + "; look whether that is right"));
    } else {
      all.bytes += read.bytes;
      all.dropped += read.dropped;
      all.books += read.books;
    }
    std::move(read.texts.begin(), read.texts.end(), std::back_inserter(texts));
  }
  if (all.dropped > 0) corpus.notes.push_back(books_note(names_of(files), all));
  if (all.empty > 0)
    corpus.notes.push_back(fmt::format("{}: {} empty documents skipped", names_of(files), all.empty));
  return texts;
}

std::vector<std::string> take_texts(std::vector<TextExample> examples) {
  std::vector<std::string> texts;
  texts.reserve(examples.size());
  for (TextExample& example : examples) texts.push_back(std::move(example.a));
  return texts;
}

void hold_out_tenth(std::vector<std::string> texts, const std::filesystem::path& path, Purpose purpose,
                    Corpus& corpus) {
  std::vector<TextExample> examples;
  examples.reserve(texts.size());
  for (std::string& text : texts) examples.push_back({.a = std::move(text), .b = {}, .label = -1});
  const auto count = examples.size();
  TextTask parted;
  hold_out_tenth(std::move(examples), parted);
  if (purpose == Purpose::kTrain && parted.train.empty()) {
    throw DataError(
        "{} holds a single document, too few to train and test on; give more, or set documents to "
        "line to split it at line ends",
        path.string());
  }
  corpus.notes.push_back(fmt::format("{}: {} of {} documents held out as the test split, by their hash",
                                     path.string(), parted.test.size(), count));
  corpus.test = take_texts(std::move(parted.test));
  if (purpose == Purpose::kTrain) corpus.train = take_texts(std::move(parted.train));
}

void load_folder(const CorpusSource& source, Purpose purpose, Corpus& corpus) {
  Splits splits = splits_of(source);
  const bool named = !splits.train.empty();
  Paths train = named ? splits.train : splits.other;
  Paths test = !splits.valid.empty() ? splits.valid : splits.test;
  if (train.empty() && !splits.valid.empty() && !splits.test.empty()) {
    train = splits.test;
    if (bytes_in(train) < bytes_in(test)) std::swap(train, test);
    corpus.notes.push_back(
        fmt::format("{} has no file named train: {}, the larger, is trained on and {} tested on",
                    source.path.string(), names_of(train), names_of(test)));
  } else {
    if (!splits.valid.empty() && !splits.test.empty())
      corpus.notes.push_back(
          fmt::format("{} left alone: {} is the test split", names_of(splits.test), names_of(splits.valid)));
    if (named && !splits.other.empty())
      corpus.notes.push_back(
          fmt::format("{} left alone: its name is that of no split", names_of(splits.other)));
  }
  if (train.empty()) std::swap(train, test);
  if (test.empty()) return hold_out_tenth(read_all(train, source, corpus), source.path, purpose, corpus);
  corpus.test = read_all(test, source, corpus);
  if (purpose == Purpose::kTrain) corpus.train = read_all(train, source, corpus);
}

}  // namespace

Corpus load_corpus(const CorpusSource& source, Purpose purpose) {
  if (!among(source.documents, {"auto", "line", "blank"})) {
    throw ConfigError("documents must be auto, line or blank, got \"{}\"", source.documents);
  }
  Corpus corpus;
  if (source.path.empty()) {
    TextTask definitions = load_supersense({}, purpose);
    corpus.train = take_texts(std::move(definitions.train));
    corpus.test = take_texts(std::move(definitions.test));
    corpus.notes.emplace_back("the documents are WordNet's definitions; set a data path to use your own");
    return corpus;
  }
  require_data(source.path, "a text file, or a folder of them,");
  std::error_code unreadable;  // reading says why
  if (std::filesystem::is_directory(source.path, unreadable)) {
    load_folder(source, purpose, corpus);
    return corpus;
  }
  std::vector<std::string> texts = read_all({source.path}, source, corpus);
  if (purpose == Purpose::kTrain) {
    hold_out_tenth(std::move(texts), source.path, purpose, corpus);
  } else {
    corpus.test = std::move(texts);
  }
  return corpus;
}

}  // namespace syncopate::corpora
