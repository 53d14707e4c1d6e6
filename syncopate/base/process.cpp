#include "syncopate/base/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

extern char** environ;

namespace syncopate {
namespace {

/// What posix_spawn is told beside the program and its words.
class SpawnSettings {
 public:
  explicit SpawnSettings(const ProcessOptions& options) {
    ::posix_spawn_file_actions_init(&actions);
    if (options.reads_nothing) {
      ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    if (options.input >= 0) ::posix_spawn_file_actions_adddup2(&actions, options.input, STDIN_FILENO);
    if (!options.log.empty()) {
      ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.log.c_str(),
                                         O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
      ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    }
    ::posix_spawnattr_init(&attributes);
    int flags = POSIX_SPAWN_SETSIGDEF;
    sigset_t signals;
    ::sigemptyset(&signals);
    if (options.blocks_no_signals) {
      ::posix_spawnattr_setsigmask(&attributes, &signals);
      flags |= POSIX_SPAWN_SETSIGMASK;
    }
    for (const int number : options.default_signals) ::sigaddset(&signals, number);
    ::posix_spawnattr_setsigdefault(&attributes, &signals);
    if (options.own_group) {
      ::posix_spawnattr_setpgroup(&attributes, 0);
      flags |= POSIX_SPAWN_SETPGROUP;
    }
    ::posix_spawnattr_setflags(&attributes, static_cast<short>(flags));
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

Process::Process(const ProcessOptions& options) : own_group_(options.own_group) {
  std::vector<std::string> words = options.argv, entries;
  if (options.environment) {
    for (const auto& [name, value] : *options.environment) entries.push_back(name + "=" + value);
  }
  const std::vector<char*> arguments = pointers(words), variables = pointers(entries);
  const SpawnSettings settings(options);
  const int code = ::posix_spawn(&pid_, options.program.c_str(), &settings.actions, &settings.attributes,
                                 arguments.data(), options.environment ? variables.data() : environ);
  if (code != 0) throw std::system_error(code, std::generic_category());
}

bool Process::stopped() const {
  if (status_) return false;
  std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t name_ends = text.rfind(')');  // a name may hold anything
  return name_ends != std::string::npos && text.size() > name_ends + 2 && text[name_ends + 2] == 'T';
}

bool Process::look() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_.has_value();
}

int Process::wait() {
  int status = 0;
  while (!status_) {
    if (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    status_ = status;
  }
  return *status_;
}

void Process::signal(int number) const {
  if (!status_) ::kill(own_group_ ? -pid_ : pid_, number);
}

}  // namespace syncopate
