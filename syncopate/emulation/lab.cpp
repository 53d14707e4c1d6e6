#include "syncopate/emulation/lab.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <system_error>

#include "syncopate/base/descriptor.h"
#include "syncopate/base/error.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/emulation/control.h"
#include "syncopate/emulation/lab_process.h"
#include "syncopate/emulation/limits.h"

// The outer process, which stays where it is, starts a keeper; the keeper leaves the namespaces and starts
// the lab, PID 1 of the new ones; the lab starts the program. Whoever of them dies, however, the others and
// all that runs inside end.
namespace syncopate::emulation {
namespace {

struct Pipe {
  Descriptor read, write;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
};

constexpr std::array kPassedOn{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/// Where the handler writes; it can only reach what is static.
std::atomic<int> lifeline{-1};
void pass_on(int number) {
  const auto byte = static_cast<uint8_t>(number);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(lifeline, &byte, 1);
  errno = error;
}

/// While one lives, signals go to the lab, except those that are ignored (nohup).
class PassOn {
 public:
  explicit PassOn(int fd) {
    lifeline = fd;
    struct sigaction action {};
    action.sa_handler = pass_on;
    ::sigemptyset(&action.sa_mask);
    for (size_t k = 0; k < kPassedOn.size(); ++k) {
      ::sigaction(kPassedOn[k], &action, &old_[k]);
      if (old_[k].sa_handler == SIG_IGN) ::sigaction(kPassedOn[k], &old_[k], nullptr);
    }
  }
  ~PassOn() {
    for (size_t k = 0; k < kPassedOn.size(); ++k) ::sigaction(kPassedOn[k], &old_[k], nullptr);
    lifeline = -1;
  }
  PassOn(const PassOn&) = delete;
  PassOn& operator=(const PassOn&) = delete;

 private:
  std::array<struct sigaction, kPassedOn.size()> old_{};
};

std::string new_name(const network::Topology& topology) {
  std::string name;
  for (const char c : topology.name())
    name += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ? c : '-';
  name = fmt::format("{}-{}", name.substr(0, 32), ::getpid());
  // Where folders are shared by several PID namespaces another lab may have it.
  const std::filesystem::path folder = labs_folder();
  std::string fresh = name;
  for (int k = 2; somebody_listens(folder / (fresh + ".sock")); ++k) fresh = fmt::format("{}-{}", name, k);
  return fresh;
}

/// Before anything is made: a report that cannot be written is not found out after hours.
void check_report(const std::filesystem::path& report) {
  if (report.empty()) return;
  const std::filesystem::path folder = std::filesystem::absolute(report).parent_path();
  if (std::filesystem::is_directory(report))
    throw ConfigError("--report {} is a folder; name a file", report.string());
  if (!std::filesystem::is_directory(folder))
    throw ConfigError("--report {}: there is no folder {}", report.string(), folder.string());
  if (::access(folder.c_str(), W_OK) != 0)
    throw ConfigError("--report {}: {} cannot be written to", report.string(), folder.string());
}

/// What the topology says and a lab does not do.
void note_what_is_left_out(const network::Topology& topology) {
  for (int host = 0; host < topology.size(); ++host) {
    const network::Host& each = topology.hosts()[static_cast<size_t>(host)];
    if (each.devices < 2 || topology.link(host, host) == network::kMemory) continue;
    tell("note: links inside a host are not emulated: the devices of {} talk over loopback", each.name);
    return;
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// Reads what the lab tells until it has ended. The first error is what counts.
class Told {
 public:
  explicit Told(const std::string& name) : name_(name) {}
  void read_all(int fd) {
    std::string text;
    std::array<char, 4096> buffer{};
    while (true) {
      const ssize_t size = ::read(fd, buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return;
      text.append(buffer.data(), static_cast<size_t>(size));
      for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
        take(text.substr(0, end));
        text.erase(0, end + 1);
      }
    }
  }
  const std::string& error() const { return error_; }
  bool killed() const { return killed_; }

 private:
  void take(const std::string& line) {
    if (line.starts_with("ready ")) {
      tell("lab {}: {}", name_, line.substr(6));
    } else if (line.starts_with("note ")) {
      tell("note: {}", line.substr(5));
    } else if (line.starts_with("error ") && error_.empty()) {
      error_ = line.substr(6);
    } else if (line.starts_with("killed")) {
      killed_ = true;
    }
  }
  std::string name_, error_;
  bool killed_ = false;
};

}  // namespace

int run_in_lab(const LabOptions& options) {
  check_can_be_emulated(options.topology);
  check_report(options.report);
  note_what_is_left_out(options.topology);
  Pipe status, signals;
  LabSetup setup{.options = options, .name = new_name(options.topology), .socket = {}};
  setup.socket = labs_folder() / (setup.name + ".sock");
  setup.outer_pid = ::getpid();
  setup.status = status.write.get();
  setup.lifeline = signals.read.get();
  // The children see no signal before they are ready for it.
  sigset_t passed;
  ::sigemptyset(&passed);
  for (const int number : kPassedOn) ::sigaddset(&passed, number);
  ::pthread_sigmask(SIG_BLOCK, &passed, &setup.program_mask);
  forget_socket(setup);  // of a process of this number that was killed long ago
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    status.read.close();
    signals.write.close();
    be_the_keeper(setup);
  }
  const int fork_error = errno;
  const PassOn passing(signals.write.get());
  ::pthread_sigmask(SIG_SETMASK, &setup.program_mask, nullptr);
  if (keeper < 0) throw ConfigError("cannot start a lab: {}", std::generic_category().message(fork_error));
  status.write.close();
  signals.read.close();
  Told told(setup.name);
  told.read_all(status.read.get());
  const int ended = wait_for(keeper);
  forget_socket(setup);
  if (!told.error().empty()) throw ConfigError("{}", told.error());
  if (told.killed() || !WIFEXITED(ended))
    throw CommError("lab {} was killed while the program ran; nothing of it is left", setup.name);
  return WEXITSTATUS(ended);
}

}  // namespace syncopate::emulation
