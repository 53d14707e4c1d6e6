#include "syncopate/base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <system_error>

#include "syncopate/base/file.h"
#include "tests/support/support.h"

namespace syncopate {
namespace {

ProcessOptions shell(const std::string& script) {
  ProcessOptions options;
  options.program = "/bin/sh";
  options.argv = {"sh", "-c", script};
  return options;
}

TEST(Process, EndsWithItsStatus) {
  Process process(shell("exit 7"));
  EXPECT_GT(process.pid(), 0);
  const int status = process.wait();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(process.status(), status);
  EXPECT_TRUE(process.look());
  EXPECT_EQ(process.wait(), status);  // again: it is known
}

TEST(Process, WritesIntoItsLogAndReadsNothing) {
  const test::TempDir folder;
  ProcessOptions options = shell("cat; echo \"$WORD\"; echo wrong >&2");
  options.environment = {{"WORD", "given"}, {"PATH", "/usr/bin:/bin"}};
  options.reads_nothing = true;
  options.log = folder / "log";
  test::write_text(options.log, "what an earlier one wrote");
  EXPECT_EQ(Process(options).wait(), 0);
  EXPECT_EQ(read_file(options.log, "log"), "given\nwrong\n");
}

TEST(Process, AGroupOfItsOwnIsSignalledWhole) {
  ProcessOptions options = shell("sleep 60 & wait");
  options.own_group = true;
  Process process(options);
  EXPECT_EQ(::getpgid(process.pid()), process.pid());
  EXPECT_FALSE(process.look());
  process.signal(SIGKILL);
  const int status = process.wait();
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  process.signal(SIGKILL);  // reaches nobody: its number may be another's by now
}

TEST(Process, SharesOurGroupUnlessAsked) {
  Process process(shell("sleep 60"));
  EXPECT_EQ(::getpgid(process.pid()), ::getpgrp());
  process.signal(SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(process.wait()));
}

TEST(Process, HandlesByDefaultWhatWeIgnore) {
  const auto before = ::signal(SIGUSR1, SIG_IGN);
  ProcessOptions options = shell("kill -USR1 $$; exit 3");
  EXPECT_TRUE(WIFEXITED(Process(options).wait()));
  options.default_signals = {SIGUSR1};
  EXPECT_TRUE(WIFSIGNALED(Process(options).wait()));
  ::signal(SIGUSR1, before);
}

TEST(Process, SaysWhenItCannotStart) {
  ProcessOptions options;
  options.program = "/no/such/program";
  options.argv = {"program"};
  try {
    const Process process(options);
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
  }
}

}  // namespace
}  // namespace syncopate
