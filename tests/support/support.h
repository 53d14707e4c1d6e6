#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::test {

std::filesystem::path source_dir();  ///< the checkout
std::filesystem::path program();     ///< the built `syncopate`

/// `$SYNCOPATE_SHARED` or ../shared beside the checkout, then `relative`; nothing when absent.
std::optional<std::filesystem::path> shared(const std::string& relative);

/// A fresh empty folder, removed with its contents at the end of the scope.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

struct CommandResult {
  int exit_code = -1;  ///< 128 + signal when killed by one
  std::string out;
  std::string err;
  double seconds = 0;
};

/// A real process, its output in files; killed at the end of the scope if still there.
class Process {
 public:
  /// `environment` ("NAME=value") is added to ours.
  explicit Process(const std::vector<std::string>& argv, const std::vector<std::string>& environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  int pid() const { return pid_; }
  void signal(int number) const;
  bool running();
  std::string err() const;                         ///< what it has said so far
  CommandResult wait(double limit_seconds = 300);  ///< killed after the limit
  /// Waits until `happened` holds; false after the limit or when the process ended.
  bool until(const std::function<bool()>& happened, double limit_seconds = 60);

 private:
  TempDir folder_;
  int pid_ = 0;
  int status_ = 0;
  bool ended_ = false;
  std::chrono::steady_clock::time_point start_;
};

CommandResult run_command(const std::vector<std::string>& argv,
                          const std::vector<std::string>& environment = {}, double limit_seconds = 300);

void write_text(const std::filesystem::path& path, const std::string& text);
std::string read_text(const std::filesystem::path& path);

}  // namespace syncopate::test

/// Skips the test where the shared data is absent; tests/allowed_skips.txt lists which may.
#define SYNCOPATE_NEED_SHARED(variable, relative)                                  \
  const auto variable##_found = ::syncopate::test::shared(relative);               \
  if (!variable##_found) GTEST_SKIP() << "needs the shared folder's " << relative; \
  const std::filesystem::path variable = *variable##_found
