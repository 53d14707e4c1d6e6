#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace syncopate::corpora {

/// The keys and values of a JSON object, in its order. A value with parts of its own is empty.
using JsonCells = std::vector<std::pair<std::string, std::string>>;

/// Calls `row` for each object of a text with one object a line, or of an array of objects, with the line on
/// which it starts and its size in the text, until it returns false. `file` is for errors. Throws DataError
/// with file and line for anything else.
void for_each_json_row(std::string_view text, const std::string& file,
                       const std::function<bool(size_t line, size_t bytes, const JsonCells& cells)>& row);

}  // namespace syncopate::corpora
