#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/base/file.h"
#include "syncopate/base/mapped_file.h"

namespace syncopate::corpora {

/// How the text files of a task are written.
struct FileForm {
  std::string encoding = "utf-8";  ///< or "replace", or what the files are in, as text::decode takes it
  std::string separator = "auto";  ///< of a table's columns: one character, "tab", or as the file has it
};

/// The separator that `form` asks for; 0: as the file has it. Throws ConfigError.
char separator_of(const FileForm& form);

/// A text file's contents as UTF-8, without a byte order mark.
struct TextFile {
  std::string text;
  std::vector<std::string> notes;  ///< sentences for the user: what was replaced
};

/// Reads a text file, plain or compressed with gzip. Throws ConfigError for an encoding that is not known,
/// DataError with file, line and byte for bytes that are not in it, and for files that are no texts (Parquet,
/// archives, UTF-16 without its being named), with what to do. `what` names the file for the user ("table").
TextFile read_text_file(const std::filesystem::path& path, std::string_view what,
                        const std::string& encoding);

/// A text file that is only looked at: mapped into memory where its bytes are its text (UTF-8, not
/// compressed), else read. The same texts, notes and errors as read_text_file's.
class OpenText {
 public:
  OpenText(const std::filesystem::path& path, std::string_view what, const std::string& encoding);
  std::string_view text() const { return text_; }
  const std::vector<std::string>& notes() const { return read_.notes; }
  /// What has been looked at need not stay in this process's memory.
  void let_go() const;
  /// Throws DataError where the file was written to since it was opened, and what was read may be mixed.
  void require_unchanged() const;

 private:
  std::unique_ptr<const MappedFile> mapped_;
  TextFile read_;
  std::string_view text_;
};

/// Who looks at a long text calls this after each kPortion of its bytes; may be empty.
using LookedAt = std::function<void()>;
inline constexpr size_t kPortion = size_t{1} << 24;

/// How to turn a Parquet file into one that can be read, as a part of a sentence.
std::string parquet_advice(const std::filesystem::path& path);

}  // namespace syncopate::corpora
