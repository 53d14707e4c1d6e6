#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::corpora {

/// The documents of a file and how many empty ones it has besides.
struct Documents {
  std::vector<std::string> texts;
  int64_t empty = 0;
};

/// What stands between the lines `*** START OF ...` and `*** END OF ...` of Project Gutenberg's books; where
/// one of them is missing, to the text's end on that side.
std::string_view without_gutenberg(std::string_view text);

/// A text parted as `how` says: "line", "blank" or "auto". Lines lose the white space around them; those of a
/// paragraph are joined by blanks.
Documents part_documents(std::string_view text, std::string_view how);

/// The documents of a text file or, by its ending, a CSV (one a row, from the column `column`). Throws
/// DataError when there is no text.
Documents read_documents(const std::filesystem::path& path, std::string_view how, const std::string& column);

}  // namespace syncopate::corpora
