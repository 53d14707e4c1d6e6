#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "syncopate/corpora/tables/table.h"
#include "syncopate/corpora/text_task_reader.h"

namespace syncopate::corpora {

/// A text task whose splits are tables. Whoever derives from it looks at one file after the other.
class TableTaskReader : public TextTaskReader {
 public:
  void read(const UseExample& use, std::optional<Split> only = {}) const override;

 protected:
  struct File {
    TableFile table;
    Split split;
    /// Makes an example of a row; false: the row is left out.
    std::function<bool(const TableFile& table, const TableFile::Row& row, TextExample& example)> example;
  };

  /// `parted`: there is one file, and a tenth of it becomes the test split.
  explicit TableTaskReader(bool parted) : parted_(parted) {}

  /// As which split the test split's file is looked at.
  Split of_test_file() const { return parted_ ? Split::kTrain : Split::kTest; }

  /// Reads a file for the first time; returns how many examples it has. `found().notes` get the file's.
  int64_t look(File file);
  int64_t left_out() const { return left_out_; }  ///< rows of all files

  /// The label that was number i until now is number `places[i]`.
  void renumber_labels(const std::vector<int64_t>& places);

  /// Behind the last file: parts it, and notes how many examples to train on there are of each label. Throws
  /// DataError, naming `path`, when there is one example only to part.
  void finish(const std::filesystem::path& path, Purpose purpose);

 private:
  const bool parted_;
  std::vector<File> files_;
  int64_t left_out_ = 0;
  std::vector<int64_t> of_label_;  ///< training examples
  // Of a file that is parted, for each example:
  std::vector<uint64_t> keys_;
  std::vector<int32_t> labels_;
  std::vector<char> held_out_;
};

}  // namespace syncopate::corpora
