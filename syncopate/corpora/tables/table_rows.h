#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "syncopate/corpora/text_file.h"

// How a table's text is cut into rows and cells. Views live for the call alone; `use` returns whether to go
// on.
namespace syncopate::corpora {

/// `bytes`: of the row, in the text.
using UseCells = std::function<bool(int64_t line, size_t bytes, std::span<const std::string_view> cells)>;

/// A line is a row, and a quote a character.
void for_each_plain_row(std::string_view text, char separator, const UseCells& use);

/// As RFC 4180 says: a cell in quotes may hold separators, newlines and doubled quotes. Throws DataError with
/// `file` and line.
void for_each_quoted_row(std::string_view text, char separator, const std::string& file, const UseCells& use);

/// What separates the columns of a CSV: of comma, semicolon and tab the one that its header has most of.
char separator_in(std::string_view text);

}  // namespace syncopate::corpora
