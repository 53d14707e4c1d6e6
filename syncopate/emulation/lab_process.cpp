#include "syncopate/emulation/lab_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/emulation/control.h"
#include "syncopate/emulation/exec.h"
#include "syncopate/emulation/hosts.h"
#include "syncopate/emulation/namespaces.h"
#include "syncopate/emulation/switch.h"
#include "syncopate/emulation/variables.h"

namespace syncopate::emulation {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Becomes the program once the network works. `go` gives a byte then: by how much it steps back for the
/// switch.
[[noreturn]] void be_the_program(const LabSetup& setup, const HostSide& first_host, int go) {
  const LabOptions& options = setup.options;
  ::setenv(kSocketVariable, setup.socket.c_str(), 1);
  ::setenv(kProgramVariable, std::to_string(::getpid()).c_str(), 1);
  ::unsetenv("SYNCOPATE_LAUNCHER_PID");  // nobody here has that number; the lab ends what is inside
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<std::string> words = options.argv;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  uint8_t step_back = 0;
  if (::read(go, &step_back, 1) != 1) ::_exit(127);
  if (step_back > 0) {
    errno = 0;
    const int nice = ::getpriority(PRIO_PROCESS, 0);
    ::setpriority(PRIO_PROCESS, 0, nice + step_back);
  }
  ::setns(first_host.network_namespace.get(), CLONE_NEWNET);
  ::prctl(PR_SET_PDEATHSIG, 0);
  ::pthread_sigmask(SIG_SETMASK, &setup.program_mask, nullptr);
  ::execv(options.program.c_str(), arguments.data());
  tell_outer(setup, fmt::format("error cannot start {}: {}", options.program.string(),
                                std::generic_category().message(errno)));
  ::_exit(127);
}

/// Passes signals on to the program, once each: what was sent to the whole group (Ctrl-C) has reached it
/// already, what was sent to the outer process alone has not.
class Signals {
 public:
  Signals(const LabSetup& setup, pid_t program) : program_(program), lifeline_(setup.lifeline) {
    sigset_t mine;
    ::sigemptyset(&mine);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) ::sigaddset(&mine, number);
    ::pthread_sigmask(SIG_BLOCK, &mine, nullptr);
    own_ = Descriptor(::signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  /// The program's exit code, once it has ended or must.
  int wait() {
    while (true) {
      std::array<pollfd, 2> polled{{{own_.get(), POLLIN, 0}, {lifeline_, POLLIN, 0}}};
      ::poll(polled.data(), polled.size(), asked_at_ || insisted_at_ ? 20 : 1000);
      take_own();
      if (const auto code = reap()) return *code;
      if (polled[1].revents != 0 && !take_asked()) return 128 + SIGKILL;  // the outer process is gone
      pass_on();
      constexpr milliseconds kPatience(5000);  // a launcher ends its workers within three seconds
      if (insisted_at_ && Clock::now() - *insisted_at_ > kPatience)
        return static_cast<int>(ExitCode::kInterrupted);
    }
  }

 private:
  void take_own() {
    signalfd_siginfo info{};
    while (::read(own_.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGCHLD) continue;
      ++seen_[info.ssi_signo];
      note();
    }
  }

  /// False at the end of the pipe.
  bool take_asked() {
    uint8_t number = 0;
    if (::read(lifeline_, &number, 1) != 1) return false;
    ++asked_[number];
    if (!asked_at_) asked_at_ = Clock::now();
    note();
    return true;
  }

  void pass_on() {
    constexpr milliseconds kSameSignal(50);  // within this the group's signal has come here too
    if (!asked_at_ || Clock::now() - *asked_at_ < kSameSignal) return;
    asked_at_.reset();
    for (size_t number = 0; number < asked_.size(); ++number) {
      if (asked_[number] > seen_[number]) ::kill(program_, static_cast<int>(number));
      asked_[number] = seen_[number] = 0;
    }
  }

  /// Who asks a second time gets what they want.
  void note() {
    constexpr milliseconds kEcho(250);
    if (!first_at_) first_at_ = Clock::now();
    if (!insisted_at_ && Clock::now() - *first_at_ > kEcho) insisted_at_ = Clock::now();
  }

  std::optional<int> reap() {
    while (true) {
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, WNOHANG);
      if (ended == program_) return exit_code_of(status);
      if (ended <= 0) return std::nullopt;
    }
  }

  pid_t program_;
  int lifeline_;
  Descriptor own_;
  std::array<int, 256> seen_{}, asked_{};
  std::optional<Clock::time_point> asked_at_, first_at_, insisted_at_;
};

std::string ready_line(const network::Topology& topology, const std::string& congestion_control) {
  std::vector<std::string> names;
  for (const network::Host& host : topology.hosts()) names.push_back(host.name);
  return fmt::format("ready network {}, {} host{} ({}), user-space switch, TCP {}", topology.name(),
                     names.size(), names.size() == 1 ? "" : "s", fmt::join(names, ", "), congestion_control);
}

int run_lab(const LabSetup& setup) {
  const network::Topology& topology = setup.options.topology;
  mount_own_proc();
  std::vector<std::string> names;
  for (const network::Host& host : topology.hosts()) names.push_back(host.name);
  name_hosts(names, setup.socket.string() + ".hosts");
  std::string congestion_control;
  const std::vector<HostSide> hosts = make_hosts(topology, congestion_control);
  Switch network_switch(topology, hosts);
  ControlServer control(setup.socket, {.name = setup.name,
                                       .how = "switch",
                                       .congestion_control = congestion_control,
                                       .topology = topology,
                                       .hosts = hosts,
                                       .network_switch = network_switch,
                                       .outer_pid = setup.outer_pid});
  std::array<int, 2> go{};
  if (::pipe2(go.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "a pipe");
  const pid_t program = ::fork();
  if (program < 0) throw std::system_error(errno, std::generic_category(), "cannot start the program");
  if (program == 0) {
    ::close(go[1]);
    be_the_program(setup, hosts.front(), go[0]);
  }
  ::close(go[0]);
  network_switch.start(setup.outer_pid);
  control.start();
  Signals signals(setup, program);
  tell_outer(setup, ready_line(topology, congestion_control));
  constexpr uint8_t kStepBack = 10;
  const uint8_t step_back = network_switch.ahead() ? 0 : kStepBack;
  if (::write(go[1], &step_back, 1) != 1) throw std::system_error(errno, std::generic_category(), "a pipe");
  ::close(go[1]);
  const int code = signals.wait();
  if (!setup.options.report.empty()) {
    LabReport report = network_switch.report();
    report.how = "switch";
    report.congestion_control = congestion_control;
    try {
      write_file_atomically(setup.options.report, to_json(report).dump(1) + "\n");
    } catch (const std::exception& error) {
      tell_outer(setup, fmt::format("note the lab's report is lost: {}", error.what()));
    }
  }
  return code;
}

}  // namespace

void forget_socket(const LabSetup& setup) {
  ::unlink(setup.socket.c_str());
  ::unlink(fresh_socket(setup.socket).c_str());
}

void tell_outer(const LabSetup& setup, const std::string& line) {
  std::string text = line;
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  text += '\n';
  [[maybe_unused]] const ssize_t written = ::write(setup.status, text.data(), text.size());
}

void be_the_lab(const LabSetup& setup) {
  int code = static_cast<int>(ExitCode::kInternal);
  try {
    code = run_lab(setup);
  } catch (const std::system_error& error) {
    tell_outer(setup, fmt::format("error a lab cannot be made here: {}; {}", error.what(),
                                  advice_for(error.code().value())));
  } catch (const std::exception& error) {
    tell_outer(setup, fmt::format("error {}", error.what()));
  }
  forget_socket(setup);
  ::_exit(code);
}

void be_the_keeper(const LabSetup& setup) {
  try {
    leave_namespaces();
  } catch (const std::exception& error) {
    tell_outer(setup, fmt::format("error {}", error.what()));
    ::_exit(static_cast<int>(ExitCode::kConfig));
  }
  // With this end of the pipe the lab sees that the keeper is there until it can be told by the kernel.
  const pid_t lab = ::fork();
  if (lab == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    be_the_lab(setup);
  }
  if (lab < 0) {
    tell_outer(setup, fmt::format("error cannot start a lab: {}", std::generic_category().message(errno)));
    ::_exit(static_cast<int>(ExitCode::kConfig));
  }
  ::close(setup.lifeline);
  int status = 0;
  while (::waitpid(lab, &status, 0) < 0 && errno == EINTR) {
  }
  forget_socket(setup);
  if (WIFSIGNALED(status)) tell_outer(setup, fmt::format("killed {}", WTERMSIG(status)));
  ::_exit(exit_code_of(status));
}

}  // namespace syncopate::emulation
