#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "syncopate/corpora/table.h"
#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

/// The labels in a column of a table, integers in numeric order, others as bytes compare. Empty cells do not
/// count. Throws DataError where there are so many that the column cannot be one of labels.
std::vector<std::string> labels_in(const Table& table, size_t column);

/// What is odd about the labels to train on, as warnings: very many, or some that differ by upper and lower
/// case alone. Throws DataError with the line for what cannot be meant: one label only, nearly as many as
/// rows, labels that differ by white space alone.
std::vector<std::string> check_labels(const Table& table, size_t column,
                                      const std::vector<std::string>& labels);

/// "classes in the training data: a (12), b (7)", at most ten of them; a warning where there is one alone.
std::string class_counts(const TextTask& task);

}  // namespace syncopate::corpora
