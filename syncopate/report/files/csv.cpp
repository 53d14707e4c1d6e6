#include <fmt/format.h>

#include "syncopate/report/files/files.h"
#include "syncopate/report/files/sheets.h"

namespace syncopate::report {
namespace {

/// RFC 4180; and a spreadsheet computes what begins like a formula, so that such a text gets an apostrophe.
std::string field(std::string text) {
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos)
    text.insert(text.begin(), '\'');
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

std::string field(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? "" : field(*text);
}

}  // namespace

std::string csv_text(const Results& results) {
  const Sheet sheet = runs_sheet(results);
  std::string all;
  for (size_t i = 0; i < sheet.head.size(); ++i) all += (i == 0 ? "" : ",") + field(sheet.head[i]);
  all += "\r\n";
  for (const auto& row : sheet.rows) {
    for (size_t i = 0; i < row.size(); ++i) all += (i == 0 ? "" : ",") + field(row[i]);
    all += "\r\n";
  }
  return all;
}

}  // namespace syncopate::report
