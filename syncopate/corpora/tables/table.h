#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/corpora/text_file.h"

namespace syncopate::corpora {

/// How a file's bytes are cut into cells.
enum class TableForm {
  kGlue,  ///< tab-separated as GLUE writes it: a quote is a character, a line is a row
  kCsv,   ///< RFC 4180: commas; a cell in quotes may hold commas, newlines and doubled quotes
  kTsv,   ///< the same with tabs
  kJson,  ///< JSON objects, one a line or in an array; the first one's keys are the columns
};

/// A whole file, plain or with gzip, as rows of text, every row as wide as the header. A byte order mark and
/// CRLF are heeded; empty lines at the end do not count. Immutable.
class Table {
 public:
  /// Reads and checks the whole file. The columns of a CSV whose header has more semicolons or tabs than
  /// commas are separated by those, unless `file` says by what. Throws DataError with the file and the line
  /// on which a row starts.
  Table(const std::filesystem::path& path, TableForm form, const FileForm& file = {});

  /// The form by the file's ending, .gz apart: `.csv`, `.jsonl` or `.json`, else tabs; `quoted_tabs` says
  /// which kind.
  static TableForm form_of(const std::filesystem::path& path, bool quoted_tabs);

  size_t rows() const { return lines_.size(); }
  size_t columns() const { return names_.size(); }
  std::optional<size_t> find_column(std::string_view name) const;
  size_t column(std::string_view name) const;  ///< throws DataError, with what there is, when it is missing
  std::string_view cell(size_t row, size_t column) const {
    return view(cells_[row * names_.size() + column]);
  }
  std::string where(size_t row) const;  ///< "file:line" of a row's first line
  std::string column_names() const;     ///< "a, b, c", for sentences; cut when it is long
  /// For the end of a sentence about a column that is missing: what to do where the separator may be wrong.
  std::string separator_hint() const;
  const std::vector<std::string>& notes() const { return notes_; }  ///< for the user: what was replaced

 private:
  struct Place {  ///< of a cell in text_: unlike a view it survives a move
    size_t begin = 0;
    size_t size = 0;
  };
  std::string_view view(Place place) const { return std::string_view(text_).substr(place.begin, place.size); }
  void read_plain(std::string_view text, char separator);
  void read_quoted(char separator);
  void read_json(std::string_view text);
  void end_row(size_t line, size_t first_cell);

  std::filesystem::path path_;
  TableForm form_;
  std::string text_;  ///< the file, quoted cells unwrapped in place; of JSON the cells one after the other
  std::vector<Place> names_;
  std::vector<Place> cells_;    ///< row after row
  std::vector<int64_t> lines_;  ///< where each row starts, from 1
  std::vector<std::string> notes_;
};

}  // namespace syncopate::corpora
