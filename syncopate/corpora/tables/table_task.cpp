#include "syncopate/corpora/tables/table_task.h"

#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/corpora/tables/labels.h"

namespace syncopate::corpora {

int64_t TableTaskReader::look(File file) {
  found_.notes.insert(found_.notes.end(), file.table.notes().begin(), file.table.notes().end());
  int64_t& of_split = file.split == Split::kTrain ? found_.train : found_.test;
  const int64_t before = of_split;
  TextExample example;
  file.table.for_each_row([&](const TableFile::Row& row) {
    if (!file.example(file.table, row, example)) {
      ++left_out_;
      return;
    }
    ++of_split;
    found_.letters += static_cast<int64_t>(example.a.size() + example.b.size());
    if (parted_) {
      keys_.push_back(stable_hash(example.a + '\t' + example.b));
      labels_.push_back(static_cast<int32_t>(example.label));
    }
    if (file.split == Split::kTrain && example.label >= 0) {
      const auto label = static_cast<size_t>(example.label);
      if (label >= of_label_.size()) of_label_.resize(label + 1);
      ++of_label_[label];
    }
  });
  files_.push_back(std::move(file));
  return of_split - before;
}

void TableTaskReader::renumber_labels(const std::vector<int64_t>& places) {
  std::vector<int64_t> counts(places.size());
  for (size_t i = 0; i < of_label_.size(); ++i) counts[static_cast<size_t>(places[i])] = of_label_[i];
  of_label_ = std::move(counts);
  for (int32_t& label : labels_) {
    if (label >= 0) label = static_cast<int32_t>(places[static_cast<size_t>(label)]);
  }
}

void TableTaskReader::finish(const std::filesystem::path& path, Purpose purpose) {
  of_label_.resize(found_.labels.size());
  if (parted_) {
    if (keys_.size() < 2) throw DataError("{} has one example, too few to train and test on", path.string());
    held_out_ = held_out(std::exchange(keys_, {}), a_tenth(labels_.size()));
    for (size_t i = 0; i < held_out_.size(); ++i) {
      if (held_out_[i] == 0) continue;
      --found_.train;
      ++found_.test;
      --of_label_[static_cast<size_t>(labels_[i])];
    }
    labels_ = {};
  }
  if (purpose == Purpose::kTrain) found_.training_notes.push_back(class_counts(found_.labels, of_label_));
}

void TableTaskReader::read(const UseExample& use, std::optional<Split> only) const {
  TextExample example;
  size_t at = 0;
  for (const File& file : files_) {
    if (only && !parted_ && file.split != only) continue;
    file.table.for_each_row([&](const TableFile::Row& row) {
      if (!file.example(file.table, row, example)) return;
      Split split = file.split;
      if (parted_ && held_out_.at(at++) != 0) split = Split::kTest;
      if (!only || split == only) use(split, example);
    });
  }
}

}  // namespace syncopate::corpora
