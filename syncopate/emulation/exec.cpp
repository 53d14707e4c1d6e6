#include "syncopate/emulation/exec.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <system_error>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/process.h"
#include "syncopate/base/text.h"

extern char** environ;

namespace syncopate::emulation {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::atomic<int> signals_seen{0}, last_signal{0};
void count_signal(int number) {
  last_signal = number;
  ++signals_seen;
}

/// As a shell finds it.
std::filesystem::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), X_OK) == 0) return name;
    throw ConfigError("{} is not a program that can be run here", name);
  }
  const char* path = ::getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    const std::filesystem::path candidate = std::filesystem::path(folder) / name;
    if (::access(candidate.c_str(), X_OK) == 0 && !std::filesystem::is_directory(candidate)) return candidate;
  }
  throw ConfigError("there is no program {} in PATH", name);
}

std::map<std::string, std::string> variables() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    all[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  return all;
}

std::string random_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

/// Processes that this thread starts have this host's name from now on, as machines have theirs.
void take_name(const std::string& name) {
  if (::unshare(CLONE_NEWUTS) == 0) [[maybe_unused]]
    const int refused = ::sethostname(name.data(), name.size());
}

std::vector<Process> start(const Inside& lab, const std::vector<std::string>& command) {
  const std::filesystem::path program = find_program(command.front());
  const network::Topology& topology = lab.topology();
  std::map<std::string, std::string> common = variables();
  const int devices = topology.devices();
  const auto cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  common.try_emplace("OMP_NUM_THREADS", std::to_string(std::max(1, cores / devices)));
  common["WORLD_SIZE"] = std::to_string(devices);
  common["MASTER_ADDR"] = lab.address(0);
  common["MASTER_PORT"] = "29500";
  for (const char* name : {"GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"})
    common[name] = "eth0";
  common["SYNCOPATE_TOKEN"] = random_token();
  std::vector<Process> processes;
  int rank = 0;
  try {
    for (int host = 0; host < topology.size(); ++host) {
      lab.enter(host);
      const network::Host& described = topology.hosts()[static_cast<size_t>(host)];
      take_name(described.name);
      for (int device = 0; device < described.devices; ++device, ++rank) {
        auto own = common;
        own["RANK"] = std::to_string(rank);
        own["LOCAL_RANK"] = std::to_string(device);
        own["LOCAL_WORLD_SIZE"] = std::to_string(described.devices);
        own["GROUP_RANK"] = std::to_string(host);
        own["SYNCOPATE_LAB_HOST"] = std::to_string(host);
        ProcessOptions options{.program = program, .argv = command, .environment = std::move(own), .log = {}};
        options.reads_nothing = devices > 1;
        options.own_group = devices > 1;  // Ctrl-C comes to all through this process
        options.default_signals = {SIGINT, SIGTERM, SIGPIPE};
        options.blocks_no_signals = true;
        processes.emplace_back(options);
      }
    }
  } catch (...) {
    for (Process& process : processes) {
      process.signal(SIGKILL);
      process.wait();
    }
    throw;
  }
  return processes;
}

}  // namespace

int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

int run_on_every_device(const Inside& lab, const std::vector<std::string>& command) {
  struct sigaction action {};
  action.sa_handler = count_signal;
  ::sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM}) ::sigaction(number, &action, nullptr);
  std::vector<Process> processes = start(lab, command);
  const bool alone = processes.size() == 1;  // it has the terminal, and its Ctrl-C
  int code = 0, passed_on = 0;
  std::optional<Clock::time_point> ending;
  const auto signal_all = [&](int number) {
    for (const Process& process : processes) process.signal(number);
  };
  while (true) {
    bool running = false;
    for (Process& process : processes) {
      if (!process.status() && process.look() && code == 0) {
        code = exit_code_of(*process.status());
        // torchrun does the same: the others would wait for it in vain.
        if (code != 0 && !ending) {
          signal_all(SIGTERM);
          ending = Clock::now();
        }
      }
      running = running || !process.status();
    }
    if (!running) return code;
    if (signals_seen > passed_on) {
      if (!alone || last_signal != SIGINT) signal_all(passed_on == 0 ? last_signal.load() : SIGKILL);
      passed_on = signals_seen;
    }
    constexpr milliseconds kGrace(3000);
    if (ending && Clock::now() - *ending > kGrace) signal_all(SIGKILL);
    std::this_thread::sleep_for(milliseconds(10));
  }
}

}  // namespace syncopate::emulation
