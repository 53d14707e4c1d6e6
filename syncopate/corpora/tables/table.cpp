#include "syncopate/corpora/tables/table.h"

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/corpora/splits.h"
#include "syncopate/corpora/tables/json_rows.h"
#include "syncopate/corpora/tables/table_rows.h"

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

}  // namespace

TableForm TableColumns::form_of(const std::filesystem::path& path, bool quoted_tabs) {
  const std::string ending = lower_ending(path);
  if (ending == ".csv") return TableForm::kCsv;
  if (ending == ".jsonl" || ending == ".json") return TableForm::kJson;
  return quoted_tabs ? TableForm::kTsv : TableForm::kGlue;
}

std::optional<size_t> TableColumns::find_column(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) return std::nullopt;
  return static_cast<size_t>(found - names_.begin());
}

size_t TableColumns::column(std::string_view name) const {
  if (const auto found = find_column(name)) return *found;
  throw DataError("{}:1: the column \"{}\" is missing (there are: {}); add it to the header line{}",
                  path_.string(), name, column_names(), separator_hint());
}

std::string TableColumns::column_names() const {
  std::string names;
  for (const std::string_view name : names_) {
    if (names.size() > 200) return names + ", ...";  // not a header at all, most likely
    names.append(names.empty() ? "" : ", ").append(name.substr(0, 60));
  }
  return names;
}

std::string TableColumns::separator_hint() const {
  if (names_.size() > 1 || form_ == TableForm::kJson) return "";
  return "; set separator if its columns are not separated by commas or tabs";
}

TableFile::TableFile(const std::filesystem::path& path, TableForm form, const FileForm& file)
    : TableColumns(path, form) {
  const char told = separator_of(file);
  text_ = std::make_shared<const OpenText>(path, "table", file.encoding);
  rows_ = text_->text();
  while (rows_.ends_with('\n') || rows_.ends_with('\r')) rows_.remove_suffix(1);
  if (rows_.empty()) throw DataError("{} is empty; give {}", path.string(), expected(form));
  if (form == TableForm::kCsv) separator_ = separator_in(rows_);
  if (told != '\0') separator_ = told;
  if (form == TableForm::kJson) {
    for_each_json_row(rows_, path.string(), [this](size_t, size_t, const JsonCells& cells) {
      for (const auto& cell : cells) names_.push_back(cell.first);
      return false;
    });
    if (names_.empty()) refuse_without_rows();
  } else {
    for_each_cut([this](const Row& row) {
      names_.assign(row.cells.begin(), row.cells.end());
      return false;
    });
  }
}

void TableFile::for_each_cut(const std::function<bool(const Row& row)>& use) const {
  const UseCells give = [&](int64_t line, size_t bytes, std::span<const std::string_view> cells) {
    return use({.line = line, .bytes = bytes, .cells = cells});
  };
  if (form_ == TableForm::kGlue) return for_each_plain_row(rows_, separator_, give);
  for_each_quoted_row(rows_, separator_, path_.string(), give);
}

void TableFile::for_each_object(const std::function<bool(const Row& row)>& use) const {
  std::vector<std::string_view> values(names_.size());
  for_each_json_row(rows_, path_.string(), [&](size_t line, size_t bytes, const JsonCells& cells) {
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto found =
          std::find_if(cells.begin(), cells.end(), [&](const auto& cell) { return cell.first == names_[i]; });
      if (found == cells.end()) {
        throw DataError("{}:{}: the key \"{}\" is missing; all objects must have the same keys",
                        path_.string(), line, names_[i].substr(0, 60));
      }
      values[i] = found->second;
    }
    return use({.line = static_cast<int64_t>(line), .bytes = bytes, .cells = values});
  });
}

void TableFile::for_each_row(const std::function<void(const Row& row)>& use) const {
  try {
    read_rows(use);
  } catch (...) {
    text_->require_unchanged();  // or that is why
    throw;
  }
  text_->require_unchanged();
}

void TableFile::read_rows(const std::function<void(const Row& row)>& use) const {
  const bool has_header = form_ != TableForm::kJson;
  int64_t seen = 0;
  size_t since = 0;  // bytes
  const auto give = [&](const Row& row) {
    if (seen++ == 0 && has_header) return true;
    if (row.cells.size() != columns()) {
      throw DataError("{}: {} columns where the header has {}; {}", where(row.line), row.cells.size(),
                      columns(),
                      "separate columns by one separator each, and put quotes around text that holds one");
    }
    use(row);
    since += row.bytes;
    if (since >= kPortion) {
      text_->let_go();
      since = 0;
    }
    return true;
  };
  has_header ? for_each_cut(give) : for_each_object(give);
  if (seen == (has_header ? 1 : 0)) refuse_without_rows();
}

void TableFile::refuse_without_rows() const {
  throw DataError("{} has a header but no rows; give a file with examples", path_.string());
}

std::string TableFile::where(int64_t line) const { return fmt::format("{}:{}", path_.string(), line); }

Table::Table(const TableFile& file) : TableColumns(file) {
  file.for_each_row([this](const TableFile::Row& row) {
    for (const std::string_view cell : row.cells) {
      cells_.push_back({text_.size(), cell.size()});
      text_ += cell;
    }
    lines_.push_back(row.line);
  });
}

std::string Table::where(size_t row) const { return fmt::format("{}:{}", path_.string(), lines_[row]); }

}  // namespace syncopate::corpora
