#include "syncopate/corpora/corpus_files.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <system_error>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/notes.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/splits.h"
#include "syncopate/corpora/text_task.h"

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
std::string books_note(const std::string& files, const DocumentsNoted& read) {
  const double share = 100 * static_cast<double>(read.dropped) / static_cast<double>(read.bytes);
  return fmt::format("{}: {} ({:.{}g} %) left out as headers and footers of {} by Project Gutenberg", files,
                     bytes_for_people(static_cast<double>(read.dropped)), share, share < 10 ? 2 : 3,
                     read.books == 1 ? "a book" : fmt::format("{} books", read.books));
}

/// Those of a folder.
void find_in_folder(const CorpusSource& source, CorpusFiles& found) {
  Splits splits = splits_of(source);
  const bool named = !splits.train.empty();
  found.train = named ? splits.train : splits.other;
  found.test = !splits.valid.empty() ? splits.valid : splits.test;
  if (found.train.empty() && !splits.valid.empty() && !splits.test.empty()) {
    found.train = splits.test;
    if (bytes_in(found.train) < bytes_in(found.test)) std::swap(found.train, found.test);
    found.notes.push_back(
        fmt::format("{} has no file named train: {}, the larger, is trained on and {} tested on",
                    source.path.string(), names_of(found.train), names_of(found.test)));
  } else {
    if (!splits.valid.empty() && !splits.test.empty())
      found.notes.push_back(
          fmt::format("{} left alone: {} is the test split", names_of(splits.test), names_of(splits.valid)));
    if (named && !splits.other.empty())
      found.notes.push_back(
          fmt::format("{} left alone: its name is that of no split", names_of(splits.other)));
  }
  if (found.train.empty()) std::swap(found.train, found.test);
  found.hold_out = found.test.empty();
}

}  // namespace

CorpusFiles find_corpus_files(const CorpusSource& source, Purpose purpose) {
  if (!among(source.documents, {"auto", "line", "blank"})) {
    throw ConfigError("documents must be auto, line or blank, got \"{}\"", source.documents);
  }
  require_data(source.path, "a text file, or a folder of them,");
  CorpusFiles found;
  std::error_code unreadable;  // reading says why
  if (std::filesystem::is_directory(source.path, unreadable)) {
    find_in_folder(source, found);
    if (purpose != Purpose::kTrain && !found.hold_out) found.train.clear();
  } else if (purpose == Purpose::kTrain) {
    found.train = {source.path};
    found.hold_out = true;
  } else {
    found.test = {source.path};
  }
  return found;
}

int64_t for_each_document(const Paths& files, const CorpusSource& source, std::vector<std::string>& notes,
                          const UseDocument& use) {
  DocumentsNoted all;
  for (const auto& file : files) {
    const DocumentsNoted read = for_each_document(file, source.documents, source.text, source.form, use);
    all.count += read.count;
    all.empty += read.empty;
    notes.insert(notes.end(), read.notes.begin(), read.notes.end());
    if (read.dropped > read.bytes / 10) {
      notes.push_back(warning(books_note(file.string(), read) + "; look whether that is right"));
    } else {
      all.bytes += read.bytes;
      all.dropped += read.dropped;
      all.books += read.books;
    }
  }
  if (all.dropped > 0) notes.push_back(books_note(names_of(files), all));
  if (all.empty > 0)
    notes.push_back(fmt::format("{}: {} empty documents skipped", names_of(files), all.empty));
  return all.count;
}

uint64_t test_key(std::string_view document) {
  // The tab stands before the second text that other tasks' examples have.
  return stable_hash(std::string(document) + '\t');
}

std::vector<char> held_out_for_test(const std::vector<uint64_t>& keys, const CorpusSource& source,
                                    Purpose purpose, std::vector<std::string>& notes) {
  const size_t held = a_tenth(keys.size());
  if (purpose == Purpose::kTrain && held == keys.size()) {
    throw DataError(
        "{} holds a single document, too few to train and test on; give more, or set documents to "
        "line to split it at line ends",
        source.path.string());
  }
  notes.push_back(fmt::format("{}: {} of {} documents held out as the test split, by their hash",
                              source.path.string(), held, keys.size()));
  return held_out(keys, held);
}

}  // namespace syncopate::corpora
