#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/record/append_file.h"

namespace syncopate::record {

/// A file of lines that grows while a run goes on. Each line is handed to the system whole, so a reader never
/// sees half of one and a killed run loses none that were written. Throws DataError when the disk is full.
class LineFile {
 public:
  /// Keeps the first `keep` lines of what is there (a run that resumes), drops the rest and appends.
  LineFile(std::filesystem::path path, int64_t keep);
  void write(std::string_view line);
  int64_t kept() const { return kept_; }  ///< lines that were there

 private:
  std::unique_ptr<AppendFile> file_;
  int64_t kept_ = 0;
};

/// The lines of a file; an unfinished last line is left out.
std::vector<std::string> read_lines(const std::filesystem::path& path, std::string_view what);

}  // namespace syncopate::record
