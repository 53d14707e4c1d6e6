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

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

CommandResult run_command(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                          double limit_seconds) {
  const TempDir folder;
  const std::string out = folder / "out", err = folder / "err";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::vector<std::string> words = argv;
  std::vector<char*> arguments, variables;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<std::string> added = environment;
  for (std::string& variable : added) variables.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string name = std::string(*variable).substr(0, std::string(*variable).find('='));
    bool replaced = false;
    for (const std::string& mine : added) replaced = replaced || mine.rfind(name + "=", 0) == 0;
    if (!replaced) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  pid_t child = 0;
  const int code = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) throw std::runtime_error("cannot start " + argv[0]);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (passed() > limit_seconds) ::kill(child, SIGKILL);
    ::usleep(5000);
  }
  CommandResult result;
  result.seconds = passed();
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_text(out);
  result.err = read_text(err);
  return result;
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
