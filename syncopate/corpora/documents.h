#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/corpora/text_file.h"

namespace syncopate::corpora {

/// What there is to say of a file's documents.
struct DocumentsNoted {
  int64_t count = 0;                 ///< that are not empty
  int64_t empty = 0;                 ///< the others
  int64_t bytes = 0;                 ///< of a text file
  int64_t dropped = 0;               ///< of these: headers and footers of books
  int64_t books = 0;                 ///< by Project Gutenberg
  std::vector<std::string> notes{};  ///< sentences for the user: what was replaced
};

/// The documents of a file.
struct Documents : DocumentsNoted {
  std::vector<std::string> texts;
};

/// Takes a document, which lives for the call alone.
using UseDocument = std::function<void(std::string_view document)>;

/// A text parted as `how` says: "line", "blank" or "auto". Lines lose the white space around them; those of a
/// paragraph are joined by blanks.
Documents part_documents(std::string_view text, std::string_view how);

/// Whether the file is a table, by its ending.
bool is_table(const std::filesystem::path& path);

/// Gives `use` the documents of a text file or, by its ending, a table (one a row, from the column `column`).
/// Of a text the headers and footers of Project Gutenberg's books are left out and counted. Throws DataError
/// when there is no text. A plain file in UTF-8 is never whole in memory.
DocumentsNoted for_each_document(const std::filesystem::path& path, std::string_view how,
                                 const std::string& column, const FileForm& form, const UseDocument& use);

/// The same documents, kept.
Documents read_documents(const std::filesystem::path& path, std::string_view how, const std::string& column,
                         const FileForm& form);

}  // namespace syncopate::corpora
