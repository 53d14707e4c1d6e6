#pragma once

#include <filesystem>
#include <string_view>

namespace syncopate::record {

/// A file that grows while a run goes on. What is written is handed to the system whole, so a reader never
/// sees half of it and a killed run loses nothing. Throws DataError when the disk is full.
class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path path);  ///< made if it is not there
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  void write(std::string_view bytes);

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace syncopate::record
