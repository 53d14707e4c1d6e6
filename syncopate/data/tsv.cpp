#include "syncopate/data/tsv.h"

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"

namespace syncopate::data {

Tsv::Tsv(const std::filesystem::path& path) : path_(path), text_(read_file(path, "table")) {
  std::string_view text = text_;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  if (text.empty())
    throw DataError("{} is empty; give a tab-separated file with a header line", path.string());
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::vector<std::string_view> fields = split(line, '\t');
    if (number == 1) {
      columns_ = fields;
      continue;
    }
    if (fields.size() != columns_.size()) {
      throw DataError("{}:{}: {} columns where the header has {}; separate columns by single tabs",
                      path.string(), number, fields.size(), columns_.size());
    }
    cells_.insert(cells_.end(), fields.begin(), fields.end());
  }
  if (cells_.empty())
    throw DataError("{} has a header but no rows; give a file with examples", path.string());
}

std::optional<size_t> Tsv::find_column(std::string_view name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<size_t>(found - columns_.begin());
}

size_t Tsv::column(std::string_view name) const {
  if (const auto found = find_column(name)) return *found;
  std::string present;
  for (const std::string_view column : columns_) {
    if (present.size() > 200) break;  // not a header at all, most likely
    present.append(present.empty() ? "" : ", ").append(column.substr(0, 60));
  }
  throw DataError("{}:1: the column \"{}\" is missing (there are: {}); add it to the header line",
                  path_.string(), name, present);
}

std::string Tsv::where(size_t row) const { return fmt::format("{}:{}", path_.string(), row + 2); }

}  // namespace syncopate::data
