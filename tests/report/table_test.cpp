#include "syncopate/report/table.h"

#include <gtest/gtest.h>

#include "syncopate/report/comparison.h"

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

TEST(Comparison, SpeedUpIsAgainstSingle) {
  record::RunRecord one, two;
  one.examples_per_s = 100;
  two.examples_per_s = 150;
  one.eval = record::EvalRecord{};
  one.eval->measures["accuracy"] = 0.5;
  const std::string text =
      comparison_table({{"", "single", 1, one}, {"", "ddp", 2, two}, {"", "ddp", 4, std::nullopt}});
  EXPECT_NE(text.find("1.00x"), std::string::npos) << text;
  EXPECT_NE(text.find("1.50x"), std::string::npos) << text;
  EXPECT_NE(text.find("50.00 %"), std::string::npos) << text;
  EXPECT_NE(text.find("diverged"), std::string::npos) << text;
}

}  // namespace
}  // namespace syncopate::report
