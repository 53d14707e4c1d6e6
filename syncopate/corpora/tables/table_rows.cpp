#include "syncopate/corpora/tables/table_rows.h"

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "syncopate/base/error.h"

namespace syncopate::corpora {
namespace {

/// Reads one cell after the other.
class QuotedCells {
 public:
  QuotedCells(std::string_view text, char separator, const std::string& file)
      : text_(text), separator_(separator), file_(file) {}

  bool more() const { return more_; }
  size_t read() const { return next_; }  ///< bytes

  /// The next row's cells; the line on which it starts.
  int64_t row(std::vector<std::string_view>& cells) {
    cells.clear();
    unwrapped_.clear();
    row_line_ = line_;
    for (bool row_goes_on = true; row_goes_on;) {
      cells.push_back(at('"') ? quoted() : plain());
      row_goes_on = at(separator_);
      more_ = next_ < text_.size();
      if (more_ && !row_goes_on) ++line_;
      ++next_;
    }
    return row_line_;
  }

 private:
  bool at(char c) const { return next_ < text_.size() && text_[next_] == c; }

  std::string_view plain() {
    const size_t begin = next_;
    while (next_ < text_.size() && text_[next_] != separator_ && text_[next_] != '\n') ++next_;
    std::string_view cell = text_.substr(begin, next_ - begin);
    if (!at(separator_) && cell.ends_with('\r')) cell.remove_suffix(1);
    return cell;
  }

  std::string_view quoted() {
    const size_t begin = ++next_;
    bool doubled = false;
    for (;; ++next_) {
      if (next_ >= text_.size()) {
        throw DataError(
            "{}:{}: a quote is opened but not closed in the row that starts here; close it, or double it "
            "if it belongs to the text",
            file_, row_line_);
      }
      if (text_[next_] == '\n') ++line_;
      if (text_[next_] != '"') continue;
      if (next_ + 1 >= text_.size() || text_[next_ + 1] != '"') break;
      doubled = true;  // two stand for one
      ++next_;
    }
    const std::string_view cell = text_.substr(begin, next_ - begin);
    ++next_;
    if (at('\r') && (next_ + 1 >= text_.size() || text_[next_ + 1] == '\n')) ++next_;
    if (next_ < text_.size() && !at(separator_) && !at('\n')) {
      throw DataError(
          "{}:{}: text goes on behind a closing quote in the row that starts here; double the quotes "
          "inside a quoted cell",
          file_, row_line_);
    }
    return doubled ? unwrapped(cell) : cell;
  }

  /// The cell with one quote for two.
  std::string_view unwrapped(std::string_view cell) {
    std::string& kept = unwrapped_.emplace_back();
    kept.reserve(cell.size());
    for (size_t i = 0; i < cell.size(); ++i) {
      kept += cell[i];
      if (cell[i] == '"') ++i;
    }
    return kept;
  }

  const std::string_view text_;
  const char separator_;
  const std::string& file_;
  size_t next_ = 0;
  int64_t line_ = 1, row_line_ = 1;
  bool more_ = true;
  std::deque<std::string> unwrapped_;  ///< cells of the row that are not in the text as they are
};

}  // namespace

void for_each_plain_row(std::string_view text, char separator, const UseCells& use) {
  std::vector<std::string_view> cells;
  for (int64_t number = 1;; ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    cells.clear();
    for (;;) {
      const size_t cell = line.find(separator);
      cells.push_back(line.substr(0, cell));
      if (cell == line.npos) break;
      line.remove_prefix(cell + 1);
    }
    if (!use(number, std::min(end, text.size()), cells) || end == text.npos) return;
    text.remove_prefix(end + 1);
  }
}

void for_each_quoted_row(std::string_view text, char separator, const std::string& file,
                         const UseCells& use) {
  QuotedCells rows(text, separator, file);
  std::vector<std::string_view> cells;
  while (rows.more()) {
    const size_t before = rows.read();
    const int64_t line = rows.row(cells);
    if (!use(line, rows.read() - before, cells)) return;
  }
}

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

}  // namespace syncopate::corpora
