#include "syncopate/corpora/labels.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/letters.h"
#include "syncopate/base/notes.h"
#include "syncopate/base/text.h"

namespace syncopate::corpora {
namespace {

constexpr size_t kMost = 2000;
constexpr size_t kMany = 100;

std::string shown(std::string_view label) { return fmt::format("\"{}\"", label.substr(0, 60)); }

std::string without_spaces(std::string_view label) {
  std::string kept;
  for (const char c : label) {
    if (!std::isspace(static_cast<unsigned char>(c))) kept += c;
  }
  return kept;
}

/// "file:line" of the first row with this label.
std::string first_row(const Table& table, size_t column, const std::string& label) {
  size_t row = 0;
  while (row + 1 < table.rows() && table.cell(row, column) != label) ++row;
  return table.where(row);
}

/// Two labels that `same` makes equal; empty where there are none.
template <typename Same>
std::vector<std::string> alike(const std::vector<std::string>& labels, const Same& same) {
  std::map<std::string, std::string> seen;
  for (const std::string& label : labels) {
    const auto [other, fresh] = seen.emplace(same(label), label);
    if (!fresh) return {other->second, label};
  }
  return {};
}

}  // namespace

std::vector<std::string> labels_in(const Table& table, size_t column) {
  std::set<std::string, std::less<>> seen;
  for (size_t row = 0; row < table.rows(); ++row) {
    const std::string_view label = table.cell(row, column);
    if (label.empty() || seen.contains(label)) continue;
    seen.emplace(label);
    if (seen.size() > kMost) {
      throw DataError(
          "{}: there are more than {} different labels by here; is this the column with the label?",
          table.where(row), kMost);
    }
  }
  std::vector<std::string> labels(seen.begin(), seen.end());
  const auto is_integer = [](const std::string& label) { return parse_integer(label).has_value(); };
  if (std::all_of(labels.begin(), labels.end(), is_integer)) {
    std::stable_sort(labels.begin(), labels.end(), [](const std::string& a, const std::string& b) {
      return *parse_integer(a) < *parse_integer(b);
    });
  }
  return labels;
}

std::vector<std::string> check_labels(const Table& table, size_t column,
                                      const std::vector<std::string>& labels) {
  constexpr size_t kFew = 20;  // a table of a few rows may have a label for each
  if (labels.size() == 1) {
    throw DataError(
        "{}: every row has the label {}, and there is nothing to learn from one class; choose another label "
        "column",
        table.where(0), shown(labels.front()));
  }
  if (labels.size() >= kFew && labels.size() * 4 >= table.rows() * 3) {
    throw DataError(
        "{}: the label column has {} different values in {} rows, such as {}: it looks like ids or texts; "
        "choose another label column",
        table.where(0), labels.size(), table.rows(), shown(table.cell(0, column)));
  }
  if (const auto two = alike(labels, without_spaces); !two.empty()) {
    throw DataError("{}: the labels {} and {} differ by white space alone; write them alike",
                    first_row(table, column, two.back()), shown(two.front()), shown(two.back()));
  }
  std::vector<std::string> warnings;
  if (const auto two = alike(labels, lower_letters); !two.empty()) {
    warnings.push_back(warning(
        fmt::format("{}: the labels {} and {} differ by upper and lower case alone and are trained as "
                    "two classes",
                    first_row(table, column, two.back()), shown(two.front()), shown(two.back()))));
  }
  if (labels.size() >= kMany) {
    warnings.push_back(
        warning(fmt::format("there are {} classes in {} rows; look whether this is the column with the label",
                            labels.size(), table.rows())));
  }
  return warnings;
}

std::string class_counts(const TextTask& task) {
  constexpr size_t kShown = 10;
  std::vector<int64_t> counts(task.labels.size(), 0);
  for (const TextExample& example : task.train) {
    if (example.label >= 0) ++counts[static_cast<size_t>(example.label)];
  }
  const auto largest = std::max_element(counts.begin(), counts.end());
  if (largest != counts.end() && *largest == static_cast<int64_t>(task.train.size())) {
    return warning(
        fmt::format("all {} training examples are of the class {}; look whether the file was sorted and cut",
                    *largest, shown(task.labels[static_cast<size_t>(largest - counts.begin())])));
  }
  std::vector<std::string> classes;
  for (size_t i = 0; i < std::min(kShown, counts.size()); ++i)
    classes.push_back(fmt::format("{} ({})", task.labels[i].substr(0, 40), counts[i]));
  const size_t more = counts.size() - classes.size();
  return fmt::format("classes in the training data: {}{}", fmt::join(classes, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace syncopate::corpora
