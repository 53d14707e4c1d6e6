#include "syncopate/record/lines.h"

#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "tests/support/support.h"

namespace syncopate::record {
namespace {

using Lines = std::vector<std::string>;
using test::read_text;
using test::write_text;

TEST(LineFile, WritesEachLineAtOnce) {
  const test::TempDir folder;
  const auto path = folder / "lines";
  LineFile file(path, 0);
  EXPECT_EQ(read_text(path), "");
  file.write("one");
  EXPECT_EQ(read_text(path), "one\n") << "a run that is killed now has lost nothing";
  file.write("");
  file.write("two");
  EXPECT_EQ(read_lines(path, "record"), (Lines{"one", "", "two"}));
}

TEST(LineFile, IsCutToTheLinesOfTheCheckpointWhenARunResumes) {
  const test::TempDir folder;
  const auto path = folder / "lines";
  const std::string before = "1\n2\n3\n4\n";
  for (const auto& [keep, kept] :
       {std::pair<int64_t, std::string>{0, ""}, {1, "1\n"}, {3, "1\n2\n3\n"}, {4, before}, {9, before}}) {
    write_text(path, before);
    LineFile file(path, keep);
    EXPECT_EQ(read_text(path), kept) << keep;
    file.write("next");
    EXPECT_EQ(read_text(path), kept + "next\n") << keep;
  }
}

TEST(LineFile, DropsAnUnfinishedLineWhenARunResumes) {
  const test::TempDir folder;
  const auto path = folder / "lines";
  write_text(path, "1\n2\n3 is not fini");
  LineFile file(path, 3);
  file.write("3");
  EXPECT_EQ(read_text(path), "1\n2\n3\n");
}

TEST(LineFile, BeginsWhereNothingIs) {
  const test::TempDir folder;
  LineFile file(folder / "new", 5);
  file.write("one");
  EXPECT_EQ(read_text(folder / "new"), "one\n");
  EXPECT_THROW(LineFile(folder / "no/such/folder", 0), DataError);
}

TEST(LineFile, SaysThatTheDiskIsFull) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  const test::TempDir folder;
  std::filesystem::create_symlink("/dev/full", folder / "lines");
  try {
    LineFile file(folder / "lines", 0);
    file.write("one");
    ADD_FAILURE() << "a full device took a line";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("free some space"), std::string::npos) << error.what();
  }
}

TEST(ReadLines, LeavesOutAnUnfinishedLastLine) {
  const test::TempDir folder;
  const auto lines_of = [&](const std::string& text) {
    write_text(folder / "lines", text);
    return read_lines(folder / "lines", "record");
  };
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("half"), Lines{});
  EXPECT_EQ(lines_of("\n"), Lines{""});
  EXPECT_EQ(lines_of("a\nb\n"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\nb\nhalf"), (Lines{"a", "b"}));
  EXPECT_THROW(read_lines(folder / "none", "record"), DataError);
}

}  // namespace
}  // namespace syncopate::record
