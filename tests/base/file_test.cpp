#include "syncopate/base/file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "syncopate/base/error.h"
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

TEST(ReadFile, ReadsToTheEnd) {
  const TempDir folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{5}, size_t{100'001}}) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i % 23);
    write_text(folder / "file", text);
    EXPECT_EQ(read_file(folder / "file", "file"), text);
    std::string together;
    size_t longest = 0;
    read_portions(folder / "file", "file", 1000, [&](std::string_view portion) {
      longest = std::max(longest, portion.size());
      together += portion;
    });
    EXPECT_EQ(together, text);
    EXPECT_EQ(longest, std::min(size, size_t{1000}));
  }
  const fs::path told = "/proc/sys/kernel/random/boot_id";
  ASSERT_EQ(fs::file_size(told), 0u) << "says that it is empty";
  std::ifstream file(told);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(read_file(told, "number"), line + "\n");
  EXPECT_THROW(read_file(folder.path(), "file"), DataError);
  EXPECT_THROW(read_portions(folder / "none", "file", 10, [](std::string_view) {}), DataError);
}

}  // namespace
}  // namespace syncopate::test
