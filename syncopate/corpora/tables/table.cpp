#include "syncopate/corpora/table.h"

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/json_rows.h"
#include "syncopate/corpora/splits.h"

namespace syncopate::corpora {
namespace {

const char* expected(TableForm form) {
  switch (form) {
    case TableForm::kGlue:
    case TableForm::kTsv:
      return "a tab-separated file with a header line";
    case TableForm::kCsv:
      return "a comma-separated file with a header line";
    case TableForm::kJson:
      break;
  }
  return "a file with one JSON object a line, or an array of objects";
}

/// What separates the columns of a CSV: of comma, semicolon and tab the one that its header has most of.
char separator_in(std::string_view text) {
  size_t commas = 0, semicolons = 0, tabs = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '\n' && !quoted) break;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    commas += c == ',';
    semicolons += c == ';';
    tabs += c == '\t';
  }
  if (semicolons > commas && semicolons >= tabs) return ';';
  return tabs > commas ? '\t' : ',';
}

}  // namespace

TableForm Table::form_of(const std::filesystem::path& path, bool quoted_tabs) {
  const std::string ending = lower_ending(path);
  if (ending == ".csv") return TableForm::kCsv;
  if (ending == ".jsonl" || ending == ".json") return TableForm::kJson;
  return quoted_tabs ? TableForm::kTsv : TableForm::kGlue;
}

Table::Table(const std::filesystem::path& path, TableForm form, const FileForm& file)
    : path_(path), form_(form) {
  const char told = separator_of(file);
  TextFile read = read_text_file(path, "table", file.encoding);
  text_ = std::move(read.text);
  notes_ = std::move(read.notes);
  while (!text_.empty() && (text_.back() == '\n' || text_.back() == '\r')) text_.pop_back();
  if (text_.empty()) throw DataError("{} is empty; give {}", path.string(), expected(form));
  switch (form) {
    case TableForm::kGlue:
      read_plain(text_, told != '\0' ? told : '\t');
      break;
    case TableForm::kCsv:
      read_quoted(told != '\0' ? told : separator_in(text_));
      break;
    case TableForm::kTsv:
      read_quoted(told != '\0' ? told : '\t');
      break;
    case TableForm::kJson: {
      const std::string objects = std::move(text_);
      text_.clear();
      read_json(objects);
      break;
    }
  }
  if (lines_.empty()) {
    throw DataError("{} has a header but no rows; give a file with examples", path.string());
  }
}

/// The cells from `first_cell` on are a row that starts on `line`; the first row of all is the header.
void Table::end_row(size_t line, size_t first_cell) {
  const size_t width = cells_.size() - first_cell;
  if (names_.empty()) {
    names_.swap(cells_);
    return;
  }
  if (width != names_.size()) {
    throw DataError("{}:{}: {} columns where the header has {}; {}", path_.string(), line, width,
                    names_.size(),
                    "separate columns by one separator each, and put quotes around text that holds one");
  }
  lines_.push_back(static_cast<int64_t>(line));
}

void Table::read_plain(std::string_view text, char separator) {
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t first = cells_.size();
    for (const std::string_view field : split(line, separator)) {
      cells_.push_back({static_cast<size_t>(field.data() - text.data()), field.size()});
    }
    end_row(number, first);
  }
}

/// One pass; a quoted cell shrinks where it stands, so the write position never overtakes the read position.
void Table::read_quoted(char separator) {
  size_t at = 0, line = 1;
  const size_t size = text_.size();
  bool more = true;
  while (more) {
    const size_t row_line = line, first = cells_.size();
    for (bool row_goes_on = true; row_goes_on;) {
      Place cell{at, 0};
      if (at < size && text_[at] == '"') {
        size_t write = at++;
        cell.begin = write;
        for (;; ++at) {
          if (at >= size) {
            throw DataError(
                "{}:{}: a quote is opened but not closed in the row that starts here; close it, or double it "
                "if it belongs to the text",
                path_.string(), row_line);
          }
          if (text_[at] == '"' && (at + 1 >= size || text_[at + 1] != '"')) break;
          if (text_[at] == '"') ++at;  // two stand for one
          if (text_[at] == '\n') ++line;
          text_[write++] = text_[at];
        }
        cell.size = write - cell.begin;
        ++at;
        if (at < size && text_[at] == '\r' && (at + 1 >= size || text_[at + 1] == '\n')) ++at;
        if (at < size && text_[at] != separator && text_[at] != '\n') {
          throw DataError(
              "{}:{}: text goes on behind a closing quote in the row that starts here; double the quotes "
              "inside a quoted cell",
              path_.string(), row_line);
        }
      } else {
        while (at < size && text_[at] != separator && text_[at] != '\n') ++at;
        cell.size = at - cell.begin;
        if ((at >= size || text_[at] == '\n') && cell.size > 0 && text_[at - 1] == '\r') --cell.size;
      }
      cells_.push_back(cell);
      row_goes_on = at < size && text_[at] == separator;
      more = at < size;
      if (more && !row_goes_on) ++line;
      ++at;
    }
    end_row(row_line, first);
  }
}

void Table::read_json(std::string_view text) {
  std::vector<std::string> keys;
  const auto keep = [this](std::string_view cell) {
    const Place place{text_.size(), cell.size()};
    text_ += cell;
    return place;
  };
  for_each_json_row(text, path_.string(), [&](size_t line, const JsonCells& cells) {
    if (keys.empty()) {
      for (const auto& [key, value] : cells) {
        keys.push_back(key);
        names_.push_back(keep(key));
      }
    }
    for (const std::string& key : keys) {
      const auto found =
          std::find_if(cells.begin(), cells.end(), [&](const auto& cell) { return cell.first == key; });
      if (found == cells.end()) {
        throw DataError("{}:{}: the key \"{}\" is missing; all objects must have the same keys",
                        path_.string(), line, key.substr(0, 60));
      }
      cells_.push_back(keep(found->second));
    }
    lines_.push_back(static_cast<int64_t>(line));
  });
}

std::optional<size_t> Table::find_column(std::string_view name) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (view(names_[i]) == name) return i;
  }
  return std::nullopt;
}

size_t Table::column(std::string_view name) const {
  if (const auto found = find_column(name)) return *found;
  throw DataError("{}:1: the column \"{}\" is missing (there are: {}); add it to the header line{}",
                  path_.string(), name, column_names(), separator_hint());
}

std::string Table::column_names() const {
  std::string names;
  for (const Place place : names_) {
    if (names.size() > 200) return names + ", ...";  // not a header at all, most likely
    names.append(names.empty() ? "" : ", ").append(view(place).substr(0, 60));
  }
  return names;
}

std::string Table::separator_hint() const {
  if (names_.size() > 1 || form_ == TableForm::kJson) return "";
  return "; set separator if its columns are not separated by commas or tabs";
}

std::string Table::where(size_t row) const { return fmt::format("{}:{}", path_.string(), lines_[row]); }

}  // namespace syncopate::corpora
