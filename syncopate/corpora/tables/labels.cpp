#include "syncopate/corpora/tables/labels.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

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

int64_t LabelsFound::add(std::string_view label, int64_t line) {
  if (rows_++ == 0) {
    first_ = label;
    first_line_ = line;
  }
  if (label.empty()) return -1;
  if (const auto known = found_.find(label); known != found_.end()) return known->second.number;
  const auto number = static_cast<int64_t>(found_.size());
  found_.emplace(label, First{.number = number, .line = line});
  if (found_.size() > kMost) {
    throw DataError("{}: there are more than {} different labels by here; is this the column with the label?",
                    table_.where(line), kMost);
  }
  return number;
}

std::vector<std::string> LabelsFound::in_order() const {
  std::vector<std::string> labels;
  for (const auto& [label, first] : found_) labels.push_back(label);
  const auto is_integer = [](const std::string& label) { return parse_integer(label).has_value(); };
  if (std::all_of(labels.begin(), labels.end(), is_integer)) {
    std::stable_sort(labels.begin(), labels.end(), [](const std::string& a, const std::string& b) {
      return *parse_integer(a) < *parse_integer(b);
    });
  }
  return labels;
}

std::vector<int64_t> LabelsFound::places() const {
  std::vector<int64_t> places(found_.size());
  int64_t place = 0;
  for (const std::string& label : in_order())
    places[static_cast<size_t>(found_.find(label)->second.number)] = place++;
  return places;
}

std::string LabelsFound::where(const std::string& label) const {
  return table_.where(found_.find(label)->second.line);
}

std::vector<std::string> LabelsFound::check() const {
  constexpr size_t kFew = 20;  // a table of a few rows may have a label for each
  const std::vector<std::string> labels = in_order();
  const std::string first_row = table_.where(first_line_);
  if (labels.size() == 1) {
    throw DataError(
        "{}: every row has the label {}, and there is nothing to learn from one class; choose another label "
        "column",
        first_row, shown(labels.front()));
  }
  if (labels.size() >= kFew && labels.size() * 4 >= rows_ * 3) {
    throw DataError(
        "{}: the label column has {} different values in {} rows, such as {}: it looks like ids or texts; "
        "choose another label column",
        first_row, labels.size(), rows_, shown(first_));
  }
  if (const auto two = alike(labels, without_spaces); !two.empty()) {
    throw DataError("{}: the labels {} and {} differ by white space alone; write them alike",
                    where(two.back()), shown(two.front()), shown(two.back()));
  }
  std::vector<std::string> warnings;
  if (const auto two = alike(labels, lower_letters); !two.empty()) {
    warnings.push_back(warning(
        fmt::format("{}: the labels {} and {} differ by upper and lower case alone and are trained as "
                    "two classes",
                    where(two.back()), shown(two.front()), shown(two.back()))));
  }
  if (labels.size() >= kMany) {
    warnings.push_back(
        warning(fmt::format("there are {} classes in {} rows; look whether this is the column with the label",
                            labels.size(), rows_)));
  }
  return warnings;
}

std::string class_counts(const std::vector<std::string>& labels, const std::vector<int64_t>& counts) {
  constexpr size_t kShown = 10;
  const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const auto largest = std::max_element(counts.begin(), counts.end());
  if (largest != counts.end() && *largest == all) {
    return warning(
        fmt::format("all {} training examples are of the class {}; look whether the file was sorted and cut",
                    *largest, shown(labels[static_cast<size_t>(largest - counts.begin())])));
  }
  std::vector<std::string> classes;
  for (size_t i = 0; i < std::min(kShown, counts.size()); ++i)
    classes.push_back(fmt::format("{} ({})", labels[i].substr(0, 40), counts[i]));
  const size_t more = counts.size() - classes.size();
  return fmt::format("classes in the training data: {}{}", fmt::join(classes, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace syncopate::corpora
