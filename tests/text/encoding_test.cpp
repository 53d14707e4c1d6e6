#include "syncopate/text/encoding.h"

#include <gtest/gtest.h>

#include "tests/support/fixtures.h"

namespace syncopate::text {
namespace {

TEST(Encoding, FindsTheFirstByteThatIsNotUtf8) {
  constexpr size_t kNone = std::string_view::npos;
  EXPECT_EQ(first_not_utf8(""), kNone);
  EXPECT_EQ(first_not_utf8("plain ASCII of some length, then café 中文 😀"), kNone);
  for (size_t before = 0; before < 20; ++before) {
    const std::string text(before, 'a');
    for (const char* wrong :
         {"\xFF", "\xC3", "\xC3(", "\xED\xA0\x80", "\xC0\xAF", "\xF5\x80\x80\x80", "\x80"})
      EXPECT_EQ(first_not_utf8(text + wrong + "b"), before) << before;
  }
}

TEST(Encoding, ReplacesAndCountsBytes) {
  using namespace std::string_literals;
  const Decoded made = decode("\xEF\xBB\xBF"s + "a\xFF"s + "b\0c\xC3(é"s, "replace", "x");
  EXPECT_EQ(made.text, "a\uFFFDb\uFFFDc\uFFFD(é");
  EXPECT_EQ(made.replaced, 3);
  EXPECT_EQ(decode("naïve", "replace", "x").replaced, 0) << "the foil";
}

TEST(Encoding, ConvertsByName) {
  EXPECT_EQ(decode("\xE4\xF6", "latin-1", "x").text, "äö");
  EXPECT_EQ(decode("\xE4\xF6", "Latin-1", "x").text, "äö");
  EXPECT_EQ(decode("\x80", "windows-1252", "x").text, "€");
  EXPECT_NE(decode("\x80", "latin-1", "x").text, "€");
  EXPECT_EQ(decode("", "latin-1", "x").text, "");
  EXPECT_EQ(test::sentence<DataError>([] { decode("a\n\xE4\xF6", "UTF-8", "x.txt"); }).substr(0, 40),
            "x.txt:2: byte 2 of the file (0xe4) is no");
  EXPECT_THROW(decode("a", "no-such-encoding", "x"), ConfigError);
}

}  // namespace
}  // namespace syncopate::text
