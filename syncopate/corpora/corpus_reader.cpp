#include "syncopate/corpora/corpus_reader.h"

#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/ordered_work.h"
#include "syncopate/corpora/split_batches.h"

namespace syncopate::corpora {
namespace {

using Batches = SplitBatches<DocumentBatch>;

/// What the first reading found of a document.
template <typename Found>
Found seen_before(const std::vector<Found>& found, size_t document) {
  if (document < found.size()) return found[document];
  throw DataError("the corpus has more documents than when it was first read; start again when it is whole");
}

using Keys = std::vector<uint64_t>;
using KeyOf = uint64_t (*)(std::string_view document);

uint64_t validation_key_of(std::string_view document) { return validation_key(document); }

/// The keys of the files' documents, one list for each way to make them, computed on all processors.
std::vector<Keys> keys_of_all(const std::vector<std::filesystem::path>& files, const CorpusSource& source,
                              const std::vector<KeyOf>& ways, std::vector<std::string>& notes) {
  std::vector<Keys> keys(ways.size());
  OrderedWork<DocumentBatch, std::vector<Keys>> work(
      worthwhile_threads(),
      [&] {
        return [&](DocumentBatch& batch) {
          std::vector<Keys> made;
          for (const KeyOf key : ways) {
            made.emplace_back();
            for (const std::string_view document : batch.documents()) made.back().push_back(key(document));
          }
          return made;
        };
      },
      [&](std::vector<Keys> made) {
        for (size_t way = 0; way < made.size(); ++way)
          keys[way].insert(keys[way].end(), made[way].begin(), made[way].end());
      });
  const CorpusReader::UseBatch add = [&](DocumentBatch batch) {
    if (!ways.empty()) work.add(std::move(batch));
  };
  Batches batches(add);
  for_each_document(files, source, notes,
                    [&](std::string_view document) { batches.add(Split::kTrain, document); });
  batches.finish();
  work.finish();
  return keys;
}

}  // namespace

std::vector<std::string_view> DocumentBatch::documents() const {
  std::vector<std::string_view> found;
  size_t begin = 0;
  for (const size_t end : ends) {
    found.emplace_back(text.data() + begin, end - begin);
    begin = end;
  }
  return found;
}

CorpusReader::CorpusReader(CorpusSource source, ValidationSource validation)
    : source_(std::move(source)),
      validation_(std::move(validation)),
      own_source_(source_),
      files_(find_corpus_files(source_, Purpose::kTrain)) {
  if (validation_.path.empty()) return;
  own_source_.path = validation_.path;
  own_files_ = find_corpus_files(own_source_, Purpose::kEvaluate);
}

std::vector<std::filesystem::path> CorpusReader::files() const {
  std::vector<std::filesystem::path> all = files_.train;
  for (const auto* more : {&files_.test, &own_files_.train, &own_files_.test})
    all.insert(all.end(), more->begin(), more->end());
  return all;
}

void CorpusReader::part() {
  if (parted_) return;
  const bool own = !validation_.path.empty();
  notes_ = files_.notes;
  std::vector<KeyOf> ways;
  if (own) ways.push_back(validation_key_of);
  std::vector<Keys> keys = keys_of_all(files_.test, source_, ways, notes_);
  if (own) test_keys_ = std::move(keys.front());
  ways.clear();
  if (files_.hold_out) ways.push_back(test_key);
  if (validation_.share > 0 || (own && files_.hold_out)) ways.push_back(validation_key_of);
  keys = keys_of_all(files_.train, source_, ways, notes_);
  if (!ways.empty()) split_of_.assign(keys.front().size(), Split::kTrain);
  size_t left = split_of_.size();  // to train on
  if (files_.hold_out) {
    const std::vector<char> held = held_out_for_test(keys.front(), source_, Purpose::kTrain, notes_);
    for (size_t i = 0; i < held.size(); ++i) {
      if (held[i] == 0) continue;
      split_of_[i] = Split::kTest;
      --left;
      if (own) test_keys_.push_back(keys.back()[i]);
    }
  }
  if (own) part_own();
  if (validation_.share > 0 && left < kFewDocuments) {
    part_few();
  } else if (validation_.share > 0) {
    Keys trained;
    for (size_t i = 0; i < split_of_.size(); ++i) {
      if (split_of_[i] == Split::kTrain) trained.push_back(keys.back()[i]);
    }
    const std::vector<char> held = held_out_for_validation(trained, validation_.share);
    held_out_ = {.documents = {}, .unit = "documents", .taken = 0, .total = left};
    size_t at = 0;
    for (Split& split : split_of_) {
      if (split != Split::kTrain || held[at++] == 0) continue;
      split = Split::kValidation;
      ++held_out_.taken;
    }
  }
  parted_ = true;
}

void CorpusReader::part_own() {
  later_notes_ = own_files_.notes;
  valid_keys_ = keys_of_all(own_files_.test, own_source_, {validation_key_of}, later_notes_).front();
  if (!own_files_.hold_out) return;
  const std::vector<Keys> keys =
      keys_of_all(own_files_.train, own_source_, {test_key, validation_key_of}, later_notes_);
  own_held_ = held_out_for_test(keys.front(), own_source_, Purpose::kEvaluate, later_notes_);
  for (size_t i = 0; i < own_held_.size(); ++i) {
    if (own_held_[i] != 0) valid_keys_.push_back(keys.back()[i]);
  }
}

void CorpusReader::part_few() {
  std::vector<std::string> unused;
  size_t at = 0;
  for_each_document(files_.train, source_, unused, [&](std::string_view document) {
    if (seen_before(split_of_, at++) == Split::kTrain) few_train_.emplace_back(document);
  });
  held_out_ = hold_out_documents(few_train_, validation_.share);
  few_valid_ = std::exchange(held_out_.documents, {});
}

void CorpusReader::read(const UseBatch& use) {
  part();
  std::vector<std::string> unused;
  Batches batches(use);
  const auto all_as = [&](Split split) {
    return [&batches, split](std::string_view document) { batches.add(split, document); };
  };
  for_each_document(files_.test, source_, unused, all_as(Split::kTest));
  size_t at = 0;
  for_each_document(files_.train, source_, unused, [&](std::string_view document) {
    const Split split = split_of_.empty() ? Split::kTrain : seen_before(split_of_, at++);
    if (split == Split::kTrain && !few_train_.empty()) return;
    batches.add(split, document);
  });
  for (const std::string& document : few_train_) batches.add(Split::kTrain, document);
  for (const std::string& document : few_valid_) batches.add(Split::kValidation, document);
  for_each_document(own_files_.test, own_source_, unused, all_as(Split::kValidation));
  at = 0;
  for_each_document(own_files_.train, own_source_, unused, [&](std::string_view document) {
    if (seen_before(own_held_, at++) != 0) batches.add(Split::kValidation, document);
  });
  batches.finish();
}

const std::vector<std::string>& CorpusReader::notes() {
  part();
  return notes_;
}

const std::vector<std::string>& CorpusReader::later_notes() {
  part();
  return later_notes_;
}

const HeldOutDocuments& CorpusReader::held_out() {
  part();
  return held_out_;
}

const std::vector<uint64_t>& CorpusReader::keys_of(Split split) {
  part();
  return split == Split::kTest ? test_keys_ : valid_keys_;
}

}  // namespace syncopate::corpora
