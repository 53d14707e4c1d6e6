#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace syncopate::test {

using Variables = std::map<std::string, std::string>;

inline std::string variable(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? "" : value;
}

/// The command that runs this program again as the disabled test `suite`.DISABLED_Main.
inline std::vector<std::string> own_command(const std::string& suite) {
  return {std::filesystem::read_symlink("/proc/self/exe"), "--gtest_filter=" + suite + ".DISABLED_Main",
          "--gtest_also_run_disabled_tests"};
}

/// This program once more, as a process of its own; killed at the end of the scope if it is still there.
class Child {
 public:
  Child(const std::string& suite, const Variables& added) {
    std::vector<std::string> words = own_command(suite), entries;
    for (const auto& [name, value] : added) entries.push_back(name + "=" + value);
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (!added.contains(text.substr(0, text.find('=')))) entries.push_back(text);
    }
    std::vector<char*> arguments, variables;
    for (std::string& word : words) arguments.push_back(word.data());
    for (std::string& entry : entries) variables.push_back(entry.data());
    arguments.push_back(nullptr);
    variables.push_back(nullptr);
    if (::posix_spawn(&pid_, arguments[0], nullptr, nullptr, arguments.data(), variables.data()) != 0) {
      throw std::runtime_error("cannot start myself again");
    }
  }
  ~Child() {
    if (status_ >= 0) return;
    kill(SIGKILL);
    wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void kill(int number) const { ::kill(pid_, number); }
  /// Exit code, or 128 + signal.
  int wait() {
    if (status_ < 0) ::waitpid(pid_, &status_, 0);
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

 private:
  pid_t pid_ = -1;
  int status_ = -1;
};

/// Until `holds()`; false after half a minute.
inline bool eventually(const std::function<bool()>& holds, double seconds = 30) {
  const auto start = std::chrono::steady_clock::now();
  while (!holds()) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace syncopate::test
