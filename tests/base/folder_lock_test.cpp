#include "syncopate/base/folder_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/support/child.h"
#include "tests/support/support.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;

FolderLockOptions options(const std::string& purpose, const std::string& host = "here") {
  return {.purpose = purpose,
          .beat = milliseconds(50),
          .patience = milliseconds(400),
          .on_wait = {},
          .host = host};
}

TEST(FolderLockChild, DISABLED_Main) {
  const auto lock = FolderLock::take(test::variable("SYNCOPATE_TEST_FOLDER"), options("a child"), nullptr);
  ASSERT_TRUE(lock);
  test::write_text(std::filesystem::path(test::variable("SYNCOPATE_TEST_FOLDER")) / "ready", "");
  ::pause();
}

TEST(FolderLock, IsGivenBackHoweverTheHolderEnds) {
  const test::TempDir folder;
  test::Child child("FolderLockChild", {{"SYNCOPATE_TEST_FOLDER", folder.path().string()}});
  for (int i = 0; i < 1000 && !std::filesystem::exists(folder / "ready"); ++i) ::usleep(10000);
  std::string holder;
  EXPECT_FALSE(FolderLock::take(folder.path(), options("me"), &holder));
  EXPECT_NE(holder.find("a child"), std::string::npos) << holder;
  EXPECT_NE(holder.find(" on here since "), std::string::npos) << holder;
  child.kill(SIGKILL);
  child.wait();
  EXPECT_TRUE(FolderLock::take(folder.path(), options("me"), &holder)) << holder;
  EXPECT_FALSE(std::filesystem::exists(folder / "LOCK"));
}

TEST(FolderLock, AnotherMachinesSignOfLifeCountsWhereItsLockDoesNotReach) {
  const test::TempDir folder;
  test::write_text(folder / "LOCK", "process 7 on there since noon UTC: a run\n");
  std::atomic<bool> over = false;
  std::thread alive([&] {
    while (!over) {
      ::utimensat(AT_FDCWD, (folder / "LOCK").c_str(), nullptr, 0);
      ::usleep(20000);
    }
  });
  std::string holder;
  EXPECT_FALSE(FolderLock::take(folder.path(), options("me"), &holder));
  EXPECT_EQ(holder, "process 7 on there since noon UTC: a run");
  over = true;
  alive.join();
  EXPECT_TRUE(FolderLock::take(folder.path(), options("me"), &holder)) << "it has died since";
}

TEST(FolderLock, LeavesNoFolderThatItMade) {
  const test::TempDir folder;
  std::filesystem::create_directory(folder / "old");
  {
    const auto fresh = FolderLock::take(folder / "a/b", options("me"), nullptr);
    const auto kept = FolderLock::take(folder / "old", options("me"), nullptr);
    EXPECT_TRUE(std::filesystem::exists(folder / "a/b/LOCK"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  EXPECT_TRUE(std::filesystem::exists(folder / "old"));
}

}  // namespace
}  // namespace syncopate
