#include "syncopate/base/text.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

TEST(Text, NearestFindsTyposAndIgnoresUnrelatedWords) {
  const std::vector<std::string> names{"single", "gather-scatter", "all-reduce", "ddp"};
  EXPECT_EQ(nearest("dpd", names), "ddp");
  EXPECT_EQ(nearest("allreduce", names), "all-reduce");
  EXPECT_EQ(nearest("elephant", names), std::nullopt);
  EXPECT_EQ(suggestion("sngle", names), "; did you mean \"single\"?");
  EXPECT_EQ(suggestion("elephant", names), "; choose one of: single, gather-scatter, all-reduce, ddp");
}

TEST(Text, ParsesOnlyWholeStringsAsNumbers) {
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_EQ(parse_integer("12x"), std::nullopt);
  EXPECT_EQ(parse_integer(""), std::nullopt);
  EXPECT_EQ(parse_number("2e-5"), 2e-5);
  EXPECT_EQ(parse_number("2e-5 "), std::nullopt);
}

TEST(Text, SplitsAndTrims) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(trim(" \ta b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, FormatsBytesAndDurations) {
  EXPECT_EQ(bytes_for_people(812), "812 B");
  EXPECT_EQ(bytes_for_people(44.7e6), "44.7 MB");
  EXPECT_EQ(duration_for_people(125), "2:05");
  EXPECT_EQ(duration_for_people(3725), "1:02:05");
}

}  // namespace
}  // namespace syncopate
