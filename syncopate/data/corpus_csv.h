#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace syncopate::data {

/// The cells of one column of a CSV (RFC 4180) whose first row names the columns; an empty `column` is
/// "text". Throws DataError with file and line.
std::vector<std::string> csv_column(const std::filesystem::path& path, const std::string& column);

}  // namespace syncopate::data
