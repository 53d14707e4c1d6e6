#include "syncopate/data/corpus_csv.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"

namespace syncopate::data {
namespace {

/// Reads records one after the other.
class Records {
 public:
  Records(std::string_view text, const std::filesystem::path& path) : text_(text), path_(path) {}

  int64_t line() const { return line_; }  ///< where the record read last begins

  bool next(std::vector<std::string>& cells) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) take();  // empty lines
    if (at_ == text_.size()) return false;
    line_ = current_;
    cells.clear();
    for (;;) {
      cells.push_back(cell());
      if (at_ == text_.size()) return true;
      const char end = take();
      if (end == '\n') return true;
    }
  }

 private:
  char take() {
    current_ += text_[at_] == '\n';
    return text_[at_++];
  }

  std::string cell() {
    std::string value;
    if (at_ < text_.size() && text_[at_] == '"') {
      ++at_;
      for (;;) {
        if (at_ == text_.size()) {
          throw DataError("{}:{}: a quoted cell that begins in this row does not end; close the quote",
                          path_.string(), line_);
        }
        const char c = take();
        if (c != '"') {
          value += c;
        } else if (at_ < text_.size() && text_[at_] == '"') {
          value += take();
        } else {
          break;
        }
      }
    }
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') value += take();
    const bool row_ends = at_ == text_.size() || text_[at_] == '\n';
    if (row_ends && value.ends_with('\r')) value.pop_back();
    return value;
  }

  std::string_view text_;
  const std::filesystem::path& path_;
  size_t at_ = 0;
  int64_t current_ = 1, line_ = 1;
};

}  // namespace

std::vector<std::string> csv_column(const std::filesystem::path& path, const std::string& column) {
  const std::string bytes = read_file(path, "table");
  std::string_view text = bytes;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Records records(text, path);
  std::vector<std::string> names, cells, found;
  records.next(names);
  const std::string wanted = column.empty() ? "text" : column;
  const auto place = std::find(names.begin(), names.end(), wanted);
  if (place == names.end()) {
    throw DataError("{}: there is no column \"{}\"{}", path.string(), wanted, suggestion(wanted, names));
  }
  while (records.next(cells)) {
    if (cells.size() != names.size()) {
      throw DataError("{}:{}: the row has {} cells, but there are {} columns; check its quotes",
                      path.string(), records.line(), cells.size(), names.size());
    }
    found.push_back(std::move(cells[static_cast<size_t>(place - names.begin())]));
  }
  return found;
}

}  // namespace syncopate::data
