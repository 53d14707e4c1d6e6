#pragma once

#include <filesystem>
#include <functional>

namespace syncopate {

/// Holds a file for one of several processes (or threads) of this host at a time; the kernel gives it back
/// however the holder ends. The file is made where it is not there, and stays.
class FileLock {
 public:
  /// Waits for its turn; `waits` is told once when another has held it for a moment, and may be empty. Throws
  /// std::system_error where the file cannot be made or its file system has no locks.
  explicit FileLock(const std::filesystem::path& path, const std::function<void()>& waits = {});
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

}  // namespace syncopate
