#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace syncopate {

struct FolderLockOptions {
  std::string purpose;                        ///< told to whoever comes second: a command line
  std::chrono::milliseconds beat{5000};       ///< how often the holder shows that it lives
  std::chrono::milliseconds patience{12000};  ///< how long another machine's sign of life is waited for
  std::function<void(const std::string&)> on_wait{};  ///< told when that begins. May be empty
  std::string host{};                                 ///< empty: this machine's name
};

/// Keeps a folder for one process, for as long as it lives, by a lock on the file LOCK in it. The kernel
/// gives the lock back however the process ends. Over NFS the lock reaches other machines; where a file
/// system keeps locks to each machine, the holder's regular touch of the file shows that it is alive.
class FolderLock {
 public:
  /// Makes the folder where it is not there. Nothing when another process holds it: `holder` then says who,
  /// in words. Throws DataError when the file cannot be made.
  static std::optional<FolderLock> take(const std::filesystem::path& folder, const FolderLockOptions& options,
                                        std::string* holder);
  FolderLock(FolderLock&&) noexcept;
  FolderLock& operator=(FolderLock&&) noexcept;
  ~FolderLock();  ///< gives it back and removes the file, and the folder if it made it and nothing is in it

 private:
  class Held;
  explicit FolderLock(std::unique_ptr<Held> held);
  std::unique_ptr<Held> held_;
};

}  // namespace syncopate
