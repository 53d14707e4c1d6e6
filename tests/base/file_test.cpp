#include "syncopate/base/file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

#include "tests/support/support.h"

namespace syncopate::test {
namespace {

namespace fs = std::filesystem;

TEST(RemoveTree, RemovesContentsButNotLinkTargets) {
  const TempDir folder;
  fs::create_directories(folder / "tree/deep/deeper");
  fs::create_directories(folder / "outside");
  std::ofstream(folder / "tree/deep/file") << "x";
  std::ofstream(folder / "outside/kept") << "x";
  fs::create_directory_symlink(folder / "outside", folder / "tree/link");
  EXPECT_TRUE(remove_tree(folder / "tree"));
  EXPECT_FALSE(fs::exists(folder / "tree"));
  EXPECT_TRUE(fs::exists(folder / "outside/kept"));
  EXPECT_TRUE(remove_tree(folder / "outside/kept"));
  EXPECT_FALSE(fs::exists(folder / "outside/kept"));
  EXPECT_TRUE(remove_tree(folder / "never was"));
}

TEST(RemoveTree, ReportsWhatItCannotRemove) {
  EXPECT_FALSE(remove_tree("/proc/self/status"));
  EXPECT_NE(errno, 0);
  EXPECT_TRUE(fs::exists("/proc/self/status"));
}

}  // namespace
}  // namespace syncopate::test
