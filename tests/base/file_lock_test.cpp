#include "syncopate/base/file_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <system_error>
#include <thread>

#include "tests/support/child.h"
#include "tests/support/support.h"

namespace syncopate {
namespace {

TEST(FileLockChild, DISABLED_Main) {
  const std::filesystem::path folder = test::variable("SYNCOPATE_TEST_FOLDER");
  const FileLock lock(folder / "lock");
  test::write_text(folder / "ready", "");
  ::pause();
}

TEST(FileLock, IsGivenBackHoweverTheHolderEnds) {
  const test::TempDir folder;
  test::Child child("FileLockChild", {{"SYNCOPATE_TEST_FOLDER", folder.path().string()}});
  for (int i = 0; i < 1000 && !std::filesystem::exists(folder / "ready"); ++i) ::usleep(10000);
  std::atomic<bool> taken = false;
  std::thread second([&] {
    const FileLock lock(folder / "lock");
    taken = true;
  });
  ::usleep(100000);
  EXPECT_FALSE(taken);
  child.kill(SIGKILL);
  child.wait();
  second.join();
  EXPECT_TRUE(taken);
}

TEST(FileLock, SaysWhyTheFileCannotBeMade) {
  const test::TempDir folder;
  EXPECT_THROW(FileLock(folder / "nowhere/lock"), std::system_error);
}

}  // namespace
}  // namespace syncopate
