#include "syncopate/run/gpu_service.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/support.h"

namespace syncopate::test {
namespace {

namespace fs = std::filesystem;

/// Sets a variable while it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const old = ::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { old_.empty() ? ::unsetenv(name_) : ::setenv(name_, old_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string old_;
};

/// A program in NVIDIA's place: serves until it is told to quit, and writes down that it was.
void write_service(const fs::path& folder, const std::string& when_serving) {
  const fs::path program = folder / "nvidia-cuda-mps-control";
  std::ofstream(program) << "#!/bin/sh\n"
                         << "if [ \"$1\" = -f ]; then\n"
                         << when_serving << "\nfi\n"
                         << "read word; echo \"$word\" > " << (folder / "told").string() << "\n"
                         << "touch \"$CUDA_MPS_PIPE_DIRECTORY/end\"\n";
  fs::permissions(program, fs::perms::owner_all);
}

constexpr const char* kServe =
    "touch \"$CUDA_MPS_PIPE_DIRECTORY/control\"; n=0; "
    "while [ ! -e \"$CUDA_MPS_PIPE_DIRECTORY/end\" ] && [ $n -lt 500 ]; do sleep 0.02; n=$((n+1)); done; "
    "exit 0";

TEST(GpuService, ServesUntilItIsTold) {
  const TempDir folder;
  write_service(folder.path(), kServe);
  const Variable path("PATH", folder.path().string() + ":/usr/bin:/bin");
  std::string pipes;
  {
    const auto service = run::GpuService::start();
    ASSERT_NE(service, nullptr);
    ASSERT_EQ(service->environment().front().first, "CUDA_MPS_PIPE_DIRECTORY");
    pipes = service->environment().front().second;
    EXPECT_TRUE(fs::exists(fs::path(pipes) / "control"));
    EXPECT_FALSE(fs::exists(folder.path() / "told"));
  }
  EXPECT_EQ(read_text(folder.path() / "told"), "quit\n");
  EXPECT_FALSE(fs::exists(pipes)) << "nothing is left behind";
}

TEST(GpuService, EndsWhenItsLauncherIsKilled) {
  const TempDir folder;
  write_service(folder.path(), kServe);
  const Variable path("PATH", folder.path().string() + ":/usr/bin:/bin");
  const fs::path said = folder.path() / "pipes";
  const pid_t launcher = ::fork();
  ASSERT_GE(launcher, 0);
  if (launcher == 0) {
    const auto service = run::GpuService::start();
    if (service) std::ofstream(said) << service->environment().front().second << std::flush;
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(launcher, &status, 0), launcher);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  const fs::path pipes = read_text(said);
  ASSERT_FALSE(pipes.empty());
  for (int i = 0; i < 500 && fs::exists(pipes); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(read_text(folder.path() / "told"), "quit\n");
  EXPECT_FALSE(fs::exists(pipes)) << "nothing is left behind";
}

TEST(GpuService, NoneIsStartedWhereOneServesOrNoneIsThere) {
  const TempDir folder;
  const Variable path("PATH", folder.path().string());
  EXPECT_EQ(run::GpuService::start(), nullptr) << "no such program";
  write_service(folder.path(), "exit 1");
  EXPECT_EQ(run::GpuService::start(), nullptr) << "it ended at once";
  write_service(folder.path(), kServe);
  const Variable served("CUDA_MPS_PIPE_DIRECTORY", folder.path().string());
  EXPECT_EQ(run::GpuService::start(), nullptr) << "the user has one";
}

}  // namespace
}  // namespace syncopate::test
