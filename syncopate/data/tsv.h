#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::data {

/// A table of tab-separated values as GLUE writes them: a header, no quoting, every row as wide as the
/// header. Lines may end in CRLF; empty lines at the end do not count.
class Tsv {
 public:
  /// Reads and checks the whole file. Throws DataError with file and line.
  explicit Tsv(const std::filesystem::path& path);
  Tsv(const Tsv&) = delete;  // the cells are views into text_
  Tsv& operator=(const Tsv&) = delete;

  size_t rows() const { return columns_.empty() ? 0 : cells_.size() / columns_.size(); }
  std::optional<size_t> find_column(std::string_view name) const;
  size_t column(std::string_view name) const;  ///< throws DataError, with what there is, when it is missing
  std::string_view cell(size_t row, size_t column) const { return cells_[row * columns_.size() + column]; }
  std::string where(size_t row) const;  ///< "file:line" of a row

 private:
  std::filesystem::path path_;
  std::string text_;
  std::vector<std::string_view> columns_;
  std::vector<std::string_view> cells_;  ///< row after row
};

}  // namespace syncopate::data
