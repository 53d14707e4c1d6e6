#include "syncopate/corpora/text_file.h"

#include <gtest/gtest.h>

#include "tests/support/fixtures.h"
#include "tests/support/image_files.h"
#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

using syncopate::test::gzipped;
using syncopate::test::TempDir;
using syncopate::test::write_text;

class TextFiles : public testing::Test {
 protected:
  std::string read(const std::string& bytes, const std::string& encoding = "utf-8") {
    write_text(folder_ / "x.txt", bytes);
    return read_text_file(folder_ / "x.txt", "text", encoding).text;
  }
  std::string fault(const std::string& bytes, const std::string& encoding = "utf-8") {
    return test::sentence<DataError>([&] { read(bytes, encoding); });
  }
  void says(const std::string& bytes, const std::string& expected, const std::string& encoding = "utf-8") {
    EXPECT_NE(fault(bytes, encoding).find(expected), std::string::npos) << fault(bytes, encoding);
  }
  TempDir folder_;
};

TEST_F(TextFiles, ReadsGzipOfSeveralMembers) {
  EXPECT_EQ(read(gzipped("one ") + gzipped("two")), "one two");
  EXPECT_EQ(read(gzipped("")), "");
  std::string long_text;
  for (int i = 0; i < 300000; ++i) long_text += std::to_string(i);
  EXPECT_EQ(read(gzipped(long_text)), long_text);
  const std::string packed = gzipped("some text");
  says(packed.substr(0, packed.size() - 3), "its gzip data are damaged (unexpected end of file)");
  says(packed + "more", "its gzip data are damaged (incorrect header check)");
  std::string wrong = packed;
  wrong[packed.size() - 6] ^= 1;
  says(wrong, "its gzip data are damaged (incorrect data check)");
}

TEST_F(TextFiles, DecodesOrRefusesWithLineAndByte) {
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "café"),
            "café");
  says("one\ntwo caf\xE9\n", "x.txt:2: byte 11 of the file (0xe9) is not UTF-8; set encoding to");
  says("a long enough line of ASCII, and then \xED\xA0\x80", "(0xed) is not UTF-8");
  EXPECT_EQ(read("caf\xE9", "latin-1"), "café");
  EXPECT_EQ(read("\x80 1", "windows-1252"), "€ 1");
  says("a\n\x81", "x.txt:2: byte 2 of the file (0x81) is not windows-1252", "windows-1252");
  EXPECT_EQ(read("a\xE9"
                 "b\xC3\xA9",
                 "replace"),
            "a\uFFFD"
            "bé");
  EXPECT_EQ(read(std::string("\xFF\xFE"
                             "a\0\xE9\0",
                             6),
                 "utf-16"),
            "aé");
  EXPECT_THROW(read("a", "no-such-encoding"), ConfigError);
}

TEST_F(TextFiles, RefusesWhatIsNoText) {
  const std::string wide("a\0b\0c\0d\0\n\0", 10);
  says("\xFF\xFE" + wide, "is in UTF-16; set encoding to utf-16, or convert it: iconv -f utf-16 -t utf-8");
  says(wide, "set encoding to utf-16le");
  says('\0' + wide.substr(0, 9), "set encoding to utf-16be");
  EXPECT_EQ(read(wide, "utf-16le"), "abcd\n");
  EXPECT_EQ(test::sentence<DataError>([&] { read(wide, "UTF-8"); }), fault(wide)) << "in any case";
  says("PAR1 and so on", "is a Parquet file, which is not read; convert it: python3 -c \"import pandas;");
  says("PK\x03\x04", "is a zip archive or a spreadsheet, not a text file");
  says(std::string("a\nb\0c and more text than zeros", 31),
       "x.txt:2: there is a zero byte, which no text has");
  says(std::string("\x89PNG\r\n\x1a\n\0\0\0", 11), "x.txt:3: there is a zero byte");
  EXPECT_EQ(fault("PARIS"), "") << "the foil";
}

}  // namespace
}  // namespace syncopate::corpora
