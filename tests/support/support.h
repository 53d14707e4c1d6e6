#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::test {

std::filesystem::path source_dir();    ///< the checkout
std::filesystem::path program();       ///< the built `syncopate`

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
  int exit_code = -1;      ///< 128 + signal when killed by one
  std::string out;
  std::string err;
  double seconds = 0;
};

/// Runs `argv` to its end (killed after `limit_seconds`), with `environment` ("NAME=value") added to ours.
CommandResult run_command(const std::vector<std::string>& argv, const std::vector<std::string>& environment = {},
                          double limit_seconds = 300);

void write_text(const std::filesystem::path& path, const std::string& text);
std::string read_text(const std::filesystem::path& path);

}  // namespace syncopate::test

/// Skips the test where the shared data is absent; tests/allowed_skips.txt lists which may.
#define SYNCOPATE_NEED_SHARED(variable, relative)                                  \
  const auto variable##_found = ::syncopate::test::shared(relative);               \
  if (!variable##_found) GTEST_SKIP() << "needs the shared folder's " << relative; \
  const std::filesystem::path variable = *variable##_found
