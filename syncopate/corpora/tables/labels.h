#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/corpora/tables/table.h"

namespace syncopate::corpora {

/// The labels in a column of a table, as its rows come.
class LabelsFound {
 public:
  /// `table` lives longer.
  explicit LabelsFound(const TableFile& table) : table_(table) {}

  /// Counts the row's label and returns how many others came before it for the first time; -1 for an empty
  /// one, which is none. Throws DataError where there are so many that the column cannot be one of labels.
  int64_t add(std::string_view label, int64_t line);

  /// Integers in numeric order, others as bytes compare.
  std::vector<std::string> in_order() const;
  /// For each label by the number that add() gave it: its number in that order.
  std::vector<int64_t> places() const;

  /// What is odd about the labels to train on, as warnings: very many, or some that differ by upper and lower
  /// case alone. Throws DataError with the line for what cannot be meant: one label only, nearly as many as
  /// rows, labels that differ by white space alone.
  std::vector<std::string> check() const;

 private:
  struct First {
    int64_t number = 0;
    int64_t line = 0;
  };
  std::string where(const std::string& label) const;  ///< of its first row

  const TableFile& table_;
  std::map<std::string, First, std::less<>> found_;
  std::string first_;  ///< of the first row, which starts on:
  int64_t first_line_ = 0;
  size_t rows_ = 0;
};

/// "classes in the training data: a (12), b (7)", at most ten of them; a warning where there is one alone.
/// `counts`: the training examples of each label.
std::string class_counts(const std::vector<std::string>& labels, const std::vector<int64_t>& counts);

}  // namespace syncopate::corpora
