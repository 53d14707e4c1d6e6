#include "syncopate/report/table.h"

#include <algorithm>

#include "syncopate/base/error.h"

namespace syncopate::report {
namespace {

/// Characters, not bytes: continuation bytes of UTF-8 take no room.
size_t width(const std::string& cell) {
  return static_cast<size_t>(std::count_if(
      cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  check(row.size() == head_.size(), "a row has as many cells as the table's head");
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (size_t column = 0; column < head_.size(); ++column) {
    size_t widest = width(head_[column]);
    for (const auto& row : rows_) widest = std::max(widest, width(row[column]));
    widths.push_back(widest);
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (size_t column = 0; column < cells.size(); ++column) {
      const std::string padding(widths[column] - width(cells[column]), ' ');
      // Names to the left, figures to the right.
      out += column == 0 ? cells[column] + padding : "  " + padding + cells[column];
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  };
  line(head_);
  std::vector<std::string> rule;
  for (const size_t w : widths) {
    std::string dashes;
    for (size_t i = 0; i < w; ++i) dashes += "─";
    rule.push_back(dashes);
  }
  line(rule);
  for (const auto& row : rows_) line(row);
  return out;
}

}  // namespace syncopate::report
