#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace syncopate::text {

/// Where the first byte stands that is not UTF-8; npos where there is none.
size_t first_not_utf8(std::string_view text);

/// Throws DataError with `file`, line and byte where the text has bytes that are not UTF-8, or zeros.
void require_utf8(std::string_view text, const std::string& file);

/// The text without the byte order mark it may begin with.
std::string_view without_byte_order_mark(std::string_view text);

/// A file's bytes as UTF-8.
struct Decoded {
  std::string text;
  int64_t replaced = 0;  ///< bytes that became U+FFFD
};

/// `encoding`: "utf-8"; "replace", which is UTF-8 with U+FFFD for every byte that is not; or any name that
/// the system's iconv knows, "latin-1" included. A byte order mark is left out. Throws ConfigError for an
/// encoding that is not known, DataError with `file`, line and byte for bytes that are not in it and for
/// zeros, which no text has.
Decoded decode(std::string bytes, const std::string& encoding, const std::string& file);

}  // namespace syncopate::text
