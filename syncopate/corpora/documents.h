#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/corpora/text_file.h"

namespace syncopate::corpora {

/// The documents of a file and how many empty ones it has besides.
struct Documents {
  std::vector<std::string> texts;
  int64_t empty = 0;
  int64_t bytes = 0;                 ///< of a text file
  int64_t dropped = 0;               ///< of these: headers and footers of books
  int64_t books = 0;                 ///< by Project Gutenberg
  std::vector<std::string> notes{};  ///< sentences for the user: what was replaced
};

/// A text parted as `how` says: "line", "blank" or "auto". Lines lose the white space around them; those of a
/// paragraph are joined by blanks.
Documents part_documents(std::string_view text, std::string_view how);

/// Whether the file is a table, by its ending.
bool is_table(const std::filesystem::path& path);

/// The documents of a text file or, by its ending, a table (one a row, from the column `column`). Of a text
/// the headers and footers of Project Gutenberg's books are left out and counted. Throws DataError when there
/// is no text.
Documents read_documents(const std::filesystem::path& path, std::string_view how, const std::string& column,
                         const FileForm& form);

}  // namespace syncopate::corpora
