#include "syncopate/run/gpu_service.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <system_error>
#include <thread>

#include "syncopate/base/clock.h"
#include "syncopate/base/file.h"
#include "syncopate/run/world.h"

namespace syncopate::run {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr const char *kProgram = "nvidia-cuda-mps-control", *kPipes = "CUDA_MPS_PIPE_DIRECTORY",
                     *kLogs = "CUDA_MPS_LOG_DIRECTORY", *kUsualPipes = "/tmp/nvidia-mps";
constexpr milliseconds kServiceLook(10);

/// Where the program is; empty: nowhere on the PATH.
fs::path find_program() {
  const char* const path = ::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path program = fs::path(folder) / kProgram;
    if (!folder.empty() && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

bool served_already() {
  return ::getenv(kPipes) != nullptr || ::access((fs::path(kUsualPipes) / "control").c_str(), F_OK) == 0;
}

bool wait_for(milliseconds patience, const auto& done) {
  const Stopwatch watch;
  while (!done()) {
    if (watch.seconds() > std::chrono::duration<double>(patience).count()) return false;
    std::this_thread::sleep_for(kServiceLook);
  }
  return true;
}

}  // namespace

std::unique_ptr<GpuService> GpuService::start(milliseconds patience) {
  const fs::path program = find_program();
  if (program.empty() || served_already()) return nullptr;
  std::error_code none;
  std::string folder = (fs::temp_directory_path(none) / "syncopate-mps-XXXXXX").string();
  if (none || ::mkdtemp(folder.data()) == nullptr) return nullptr;
  std::unique_ptr<GpuService> service(new GpuService(program, folder));
  if (!service->ready(patience)) return nullptr;
  service->guard();
  return service;
}

GpuService::GpuService(fs::path program, fs::path folder)
    : program_(std::move(program)),
      folder_(std::move(folder)),
      environment_{{kPipes, folder_.string()}, {kLogs, folder_.string()}} {}

GpuService::~GpuService() {
  if (guard_) {
    guard_->signal(SIGKILL);
    guard_->wait();
  }
  if (process_ && !process_->look()) {
    constexpr milliseconds kPatience(3000);
    try {
      Process quit = call("quit");
      wait_for(kPatience, [&] { return quit.look(); });
      quit.signal(SIGKILL);
      quit.wait();
    } catch (const std::system_error&) {  // then it is ended without asking
    }
    if (!wait_for(kPatience, [&] { return process_->look(); })) process_->signal(SIGKILL);
  }
  if (process_) process_->wait();
  remove_tree(folder_);
}

bool GpuService::ready(milliseconds patience) {
  try {
    process_ = std::make_unique<Process>(call("serve"));
  } catch (const std::system_error&) {
    return false;
  }
  return wait_for(patience,
                  [&] { return process_->look() || ::access((folder_ / "control").c_str(), F_OK) == 0; }) &&
         !process_->status();
}

ProcessOptions GpuService::beside(const char* log) const {
  ProcessOptions options;
  options.environment = environment_of_process();
  for (const auto& [name, value] : environment_) (*options.environment)[name] = value;
  options.own_group = true;
  options.log = folder_ / log;
  return options;
}

/// A shell that does what our destructor would have done, once the pipe says that nobody can any more.
void GpuService::guard() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  const lifeline::Socket theirs(ends[0]);
  alive_ = lifeline::Socket(ends[1]);
  ProcessOptions options = beside("guard.log");
  options.input = theirs.fd();
  options.program = "/bin/sh";
  options.argv = {"sh", "-c", "read -r nothing; echo quit | \"$0\"; rm -rf \"$1\"", program_.string(),
                  folder_.string()};
  try {
    guard_ = std::make_unique<Process>(options);
  } catch (const std::system_error&) {  // then it is ours alone to end it
  }
}

/// "serve" stays in the foreground; any other word is a command to the one that serves.
Process GpuService::call(const std::string& command) const {
  ProcessOptions options = beside(command == "serve" ? "service.log" : "command.log");
  options.reads_nothing = true;
  if (command == "serve") {
    options.program = program_;
    options.argv = {kProgram, "-f"};
  } else {
    options.program = "/bin/sh";
    options.argv = {"sh", "-c", "echo " + command + " | \"$0\"", program_.string()};
  }
  return Process(options);
}

}  // namespace syncopate::run
