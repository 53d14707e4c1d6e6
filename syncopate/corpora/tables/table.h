#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
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

/// The columns of a table.
class TableColumns {
 public:
  /// The form by the file's ending, .gz apart: `.csv`, `.jsonl` or `.json`, else tabs; `quoted_tabs` says
  /// which kind.
  static TableForm form_of(const std::filesystem::path& path, bool quoted_tabs);

  const std::filesystem::path& path() const { return path_; }
  size_t columns() const { return names_.size(); }
  std::optional<size_t> find_column(std::string_view name) const;
  size_t column(std::string_view name) const;  ///< throws DataError, with what there is, when it is missing
  std::string column_names() const;            ///< "a, b, c", for sentences; cut when it is long
  /// For the end of a sentence about a column that is missing: what to do where the separator may be wrong.
  std::string separator_hint() const;

 protected:
  TableColumns(std::filesystem::path path, TableForm form) : path_(std::move(path)), form_(form) {}

  std::filesystem::path path_;
  TableForm form_;
  std::vector<std::string> names_;
};

/// A table's file, plain or with gzip, whose rows are read one after the other, again and again. A plain file
/// in UTF-8 is mapped and never whole in memory. Every row is as wide as the header. A byte order mark and
/// CRLF are heeded; empty lines at the end do not count.
class TableFile : public TableColumns {
 public:
  /// Reads the header. The columns of a CSV whose header has more semicolons or tabs than commas are
  /// separated by those, unless `file` says by what. Throws DataError with the file.
  TableFile(const std::filesystem::path& path, TableForm form, const FileForm& file = {});

  /// A row, which lives for the call alone.
  struct Row {
    int64_t line = 0;  ///< on which it starts, from 1
    size_t bytes = 0;  ///< in the file
    std::span<const std::string_view> cells;
  };
  /// Throws DataError with the file and the line for a row that cannot be read, where there is none, and
  /// where somebody has written to a file that is mapped.
  void for_each_row(const std::function<void(const Row& row)>& use) const;

  std::string where(int64_t line) const;  ///< "file:line"
  const std::vector<std::string>& notes() const {
    return text_->notes();
  }  ///< for the user: what was replaced

 private:
  /// The header's row first, where it has one.
  void for_each_cut(const std::function<bool(const Row& row)>& use) const;
  void for_each_object(const std::function<bool(const Row& row)>& use) const;
  void read_rows(const std::function<void(const Row& row)>& use) const;
  [[noreturn]] void refuse_without_rows() const;

  std::shared_ptr<const OpenText> text_;
  std::string_view rows_;  ///< what of the text is the table
  char separator_ = '\t';
};

/// A whole table in memory, with what TableFile says of it. Immutable.
class Table : public TableColumns {
 public:
  /// Throws as TableFile does.
  Table(const std::filesystem::path& path, TableForm form, const FileForm& file = {})
      : Table(TableFile(path, form, file)) {}

  size_t rows() const { return lines_.size(); }
  std::string_view cell(size_t row, size_t column) const {
    const Place place = cells_[row * columns() + column];
    return std::string_view(text_).substr(place.begin, place.size);
  }
  std::string where(size_t row) const;  ///< "file:line" of a row's first line

 private:
  struct Place {  ///< of a cell in text_: unlike a view it survives a move
    size_t begin = 0;
    size_t size = 0;
  };

  explicit Table(const TableFile& file);

  std::string text_;            ///< the cells, one after the other
  std::vector<Place> cells_;    ///< row after row
  std::vector<int64_t> lines_;  ///< where each row starts, from 1
};

}  // namespace syncopate::corpora
