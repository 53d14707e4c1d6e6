#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace syncopate {

struct ProcessOptions {
  std::filesystem::path program = "/proc/self/exe";               ///< a path: PATH is not searched
  std::vector<std::string> argv;                                  ///< argv[0] included
  std::optional<std::map<std::string, std::string>> environment;  ///< not given: ours
  bool reads_nothing = false;          ///< standard input is /dev/null instead of ours
  int input = -1;                      ///< a descriptor that becomes its standard input; -1: none does
  std::filesystem::path log;           ///< takes standard output and error, emptied first; empty: ours
  bool own_group = false;              ///< a process group of its own, which `signal` then reaches whole
  std::vector<int> default_signals{};  ///< those it handles by default whatever we do with them
  bool blocks_no_signals = false;      ///< instead of those we block
};

/// This machine's name.
std::string host_name();

/// A child process. Neither ended nor waited for by its destructor: whoever starts one must wait.
class Process {
 public:
  explicit Process(const ProcessOptions& options);  ///< starts it; throws std::system_error
  Process(Process&&) = default;
  Process& operator=(Process&&) = default;

  pid_t pid() const { return pid_; }
  /// waitpid's, once it is known to have ended.
  const std::optional<int>& status() const { return status_; }
  /// Whether somebody has stopped it (SIGSTOP), so that it stands still until it is continued.
  bool stopped() const;
  /// Whether it has ended; does not block.
  bool look();
  /// Blocks until it has ended; its status, 0 where the kernel keeps none (SIGCHLD is ignored).
  int wait();
  /// To it, or to its group if it has its own; does nothing once it is known to have ended.
  void signal(int number) const;

 private:
  pid_t pid_ = -1;
  bool own_group_;
  std::optional<int> status_;
};

}  // namespace syncopate
