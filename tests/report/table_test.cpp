#include "syncopate/report/table.h"

#include <gtest/gtest.h>

#include "syncopate/base/error.h"

namespace syncopate::report {
namespace {

TEST(Table, AlignsNamesLeftAndFiguresRight) {
  Table table({"name", "ms"});
  table.add({"a", "10.5"});
  table.add({"long name", "3"});
  EXPECT_EQ(table.text(),
            "name         ms\n"
            "─────────  ────\n"
            "a          10.5\n"
            "long name     3\n");
}

TEST(Table, IsAsWideAsItsHeadWhereThatIsWidest) {
  Table table({"strategy", "workers", "loss"});
  table.add({"ddp", "2", "1"});
  EXPECT_EQ(table.text(),
            "strategy  workers  loss\n"
            "────────  ───────  ────\n"
            "ddp             2     1\n");
}

TEST(Table, CountsCharactersNotBytes) {
  Table table({"row", "x"});
  table.add({"größer", "–"});
  table.add({"smaller", "1"});
  EXPECT_EQ(table.text(),
            "row      x\n"
            "───────  ─\n"
            "größer   –\n"
            "smaller  1\n");
}

TEST(Table, LeavesNoSpacesAtTheEndOfALine) {
  Table table({"row", "first", "second"});
  table.add({"all", "1", "2"});
  table.add({"some", "1", ""});
  table.add({"none", "", ""});
  EXPECT_EQ(table.text(),
            "row   first  second\n"
            "────  ─────  ──────\n"
            "all       1       2\n"
            "some      1\n"
            "none\n");
}

TEST(Table, RefusesARowOfAnotherWidth) {
  Table table({"name", "ms"});
  EXPECT_THROW(table.add({"a"}), InternalError);
  EXPECT_THROW(table.add({"a", "1", "2"}), InternalError);
  EXPECT_EQ(table.text(), "name  ms\n────  ──\n") << "and has none of them";
}

}  // namespace
}  // namespace syncopate::report
