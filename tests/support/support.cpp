#include "tests/support/support.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "syncopate/base/file.h"

extern char** environ;

namespace syncopate::test {

std::filesystem::path source_dir() { return SYNCOPATE_SOURCE_DIR; }
std::filesystem::path program() { return std::filesystem::path(SYNCOPATE_BINARY_DIR) / "syncopate"; }

std::optional<std::filesystem::path> shared(const std::string& relative) {
  const char* given = ::getenv("SYNCOPATE_SHARED");
  const std::filesystem::path root =
      given != nullptr ? std::filesystem::path(given) : source_dir().parent_path() / "shared";
  if (!std::filesystem::exists(root / relative)) return std::nullopt;
  return root / relative;
}

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "syncopate-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TempDir::~TempDir() { remove_tree(path_); }

Process::Process(const std::vector<std::string>& argv, const std::vector<std::string>& environment) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, (folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawn_file_actions_addopen(&actions, 2, (folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  std::vector<std::string> words = argv, added = environment;
  std::vector<char*> arguments, variables;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  for (std::string& variable : added) variables.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string name = std::string(*variable).substr(0, std::string(*variable).find('='));
    bool replaced = false;
    for (const std::string& mine : added) replaced = replaced || mine.rfind(name + "=", 0) == 0;
    if (!replaced) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  start_ = std::chrono::steady_clock::now();
  const int code = ::posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) throw std::runtime_error("cannot start " + argv[0]);
}

Process::~Process() {
  if (ended_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, &status_, 0);
}

void Process::signal(int number) const { ::kill(pid_, number); }

bool Process::running() {
  if (!ended_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
  return !ended_;
}

std::string Process::err() const { return read_text(folder_ / "err"); }

bool Process::until(const std::function<bool()>& happened, double limit_seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_seconds);
  while (!happened()) {
    if (!running() || std::chrono::steady_clock::now() > end) return happened();
    ::usleep(2000);
  }
  return true;
}

CommandResult Process::wait(double limit_seconds) {
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  };
  while (running()) {
    if (passed() > limit_seconds) ::kill(pid_, SIGKILL);
    ::usleep(2000);
  }
  CommandResult result;
  result.seconds = passed();
  result.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  result.out = read_text(folder_ / "out");
  result.err = err();
  return result;
}

CommandResult run_command(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                          double limit_seconds) {
  return Process(argv, environment).wait(limit_seconds);
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace syncopate::test
