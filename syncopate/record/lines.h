#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::record {

/// A file of lines that grows while a run goes on. Each line is handed to the system whole, so a reader never
/// sees half of one and a killed run loses none that were written. Throws DataError when the disk is full.
class LineFile {
 public:
  /// Keeps the first `keep` lines of what is there (a run that resumes), drops the rest and appends.
  LineFile(std::filesystem::path path, int64_t keep);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  void write(std::string_view line);
  int64_t kept() const { return kept_; }  ///< lines that were there

 private:
  std::filesystem::path path_;
  int file_ = -1;
  int64_t kept_ = 0;
};

/// The lines of a file; an unfinished last line is left out.
std::vector<std::string> read_lines(const std::filesystem::path& path, std::string_view what);

}  // namespace syncopate::record
