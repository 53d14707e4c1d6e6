#include "syncopate/corpora/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"

namespace syncopate::corpora {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

const char* expected(TableForm form) {
  switch (form) {
    case TableForm::kGlue:
    case TableForm::kTsv:
      return "a tab-separated file with a header line";
    case TableForm::kCsv:
      return "a comma-separated file with a header line";
    case TableForm::kJsonLines:
      break;
  }
  return "a file with one JSON object a line";
}

/// The keys and values of one JSON object, in its order, without building it: values with parts of their own
/// are no cells, and however deep they are nested, nothing here follows them.
class JsonRow : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<std::pair<std::string, std::string>> cells;

  /// False when `line` is not one object with something in it.
  bool read(std::string_view line) {
    cells.clear();
    depth_ = 0;
    return nlohmann::json::sax_parse(line, this) && !cells.empty();
  }

  // What the parser calls.
  bool null() override { return take({}); }
  bool boolean(bool value) override { return take(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return take(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return take(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& written) override { return take(written); }
  bool string(string_t& value) override { return take(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return ++depth_ > 0; }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(size_t) override { return ++depth_ > 1; }  // the line itself is an object
  bool end_array() override { return depth_-- > 0; }
  bool key(string_t& name) override {
    if (depth_ == 1) cells.emplace_back(std::move(name), std::string());
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  bool take(std::string value) {
    if (depth_ == 1) cells.back().second = std::move(value);
    return depth_ > 0;
  }

  int64_t depth_ = 0;
};

}  // namespace

TableForm Table::form_of(const std::filesystem::path& path, bool quoted_tabs) {
  const std::string ending = path.extension().string();
  if (ending == ".csv") return TableForm::kCsv;
  if (ending == ".jsonl" || ending == ".json") return TableForm::kJsonLines;
  return quoted_tabs ? TableForm::kTsv : TableForm::kGlue;
}

Table::Table(const std::filesystem::path& path, TableForm form)
    : path_(path), text_(read_file(path, "table")) {
  if (text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
  while (!text_.empty() && (text_.back() == '\n' || text_.back() == '\r')) text_.pop_back();
  if (text_.empty()) throw DataError("{} is empty; give {}", path.string(), expected(form));
  switch (form) {
    case TableForm::kGlue:
      read_plain(text_);
      break;
    case TableForm::kCsv:
      read_quoted(',');
      break;
    case TableForm::kTsv:
      read_quoted('\t');
      break;
    case TableForm::kJsonLines: {
      const std::string lines = std::move(text_);
      text_.clear();
      read_json_lines(lines);
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

void Table::read_plain(std::string_view text) {
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t first = cells_.size();
    for (const std::string_view field : split(line, '\t')) {
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

void Table::read_json_lines(std::string_view text) {
  constexpr const char* kAdvice = "each line must be one JSON object with the same keys";
  std::vector<std::string> keys;
  JsonRow row;
  const auto keep = [this](std::string_view cell) {
    const Place place{text_.size(), cell.size()};
    text_ += cell;
    return place;
  };
  size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    if (!row.read(line)) {
      throw DataError("{}:{}: not a JSON object; {}", path_.string(), number, kAdvice);
    }
    if (keys.empty()) {
      for (const auto& [key, value] : row.cells) {
        keys.push_back(key);
        names_.push_back(keep(key));
      }
    }
    for (const std::string& key : keys) {
      const auto found = std::find_if(row.cells.begin(), row.cells.end(),
                                      [&](const auto& cell) { return cell.first == key; });
      if (found == row.cells.end()) {
        throw DataError("{}:{}: the key \"{}\" is missing; {}", path_.string(), number, key.substr(0, 60),
                        kAdvice);
      }
      cells_.push_back(keep(found->second));
    }
    lines_.push_back(static_cast<int64_t>(number));
  }
}

std::optional<size_t> Table::find_column(std::string_view name) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (view(names_[i]) == name) return i;
  }
  return std::nullopt;
}

size_t Table::column(std::string_view name) const {
  if (const auto found = find_column(name)) return *found;
  throw DataError("{}:1: the column \"{}\" is missing (there are: {}); add it to the header line",
                  path_.string(), name, column_names());
}

std::string Table::column_names() const {
  std::string names;
  for (const Place place : names_) {
    if (names.size() > 200) return names + ", ...";  // not a header at all, most likely
    names.append(names.empty() ? "" : ", ").append(view(place).substr(0, 60));
  }
  return names;
}

std::string Table::where(size_t row) const { return fmt::format("{}:{}", path_.string(), lines_[row]); }

}  // namespace syncopate::corpora
