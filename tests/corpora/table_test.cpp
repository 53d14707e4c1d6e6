#include "syncopate/corpora/tables/table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

using syncopate::test::TempDir;
using syncopate::test::write_text;
using test::sentence;

class Tables : public testing::Test {
 protected:
  Table read(TableForm form, const std::string& text) {
    write_text(folder_ / "x", text);
    return Table(folder_ / "x", form);
  }
  /// All cells, a row a line.
  std::string cells(TableForm form, const std::string& text, size_t columns) {
    const Table table = read(form, text);
    std::string all;
    for (size_t row = 0; row < table.rows(); ++row) {
      for (size_t column = 0; column < columns; ++column) {
        all.append(column > 0 ? "|" : "").append(table.cell(row, column));
      }
      all += "/";
    }
    return all;
  }
  /// The sentence behind the file's name.
  std::string fault(TableForm form, const std::string& text) {
    const std::string said = sentence<DataError>([&] { read(form, text); });
    const size_t name = said.find("/x");
    return name == std::string::npos ? said : said.substr(name + 2);
  }
  TempDir folder_;
};

TEST_F(Tables, ReadsCsvAsInRfc4180) {
  EXPECT_EQ(cells(TableForm::kCsv, "a,b\r\n1,2\r\n3,4\r\n\r\n", 2), "1|2/3|4/");
  EXPECT_EQ(cells(TableForm::kCsv, "\xEF\xBB\xBF\"a\",b\n\"x, y\",\"he said \"\"no\"\"\"\n", 2),
            "x, y|he said \"no\"/");
  EXPECT_EQ(cells(TableForm::kCsv, "a,b\n\"two\nlines\r\nthree\",z\n,\n\"\",\"\"\n", 2),
            "two\nlines\r\nthree|z/|/|/");
  EXPECT_EQ(cells(TableForm::kCsv, "a,b\n5\" disk,it's \"so\"\n", 2), "5\" disk|it's \"so\"/")
      << "a quote inside a plain cell is a character";
  EXPECT_EQ(cells(TableForm::kCsv, "a\n\"x\"\r\n\"\"\"\"\n", 1), "x/\"/");
}

TEST_F(Tables, RowsKnowTheirFirstLine) {
  const Table table = read(TableForm::kCsv, "a,b\n\"1\n2\n3\",x\ny,\"\"\"\n\"\"\"\nz,z\n");
  ASSERT_EQ(table.rows(), 3U);
  EXPECT_TRUE(table.where(0).ends_with("/x:2"));
  EXPECT_TRUE(table.where(1).ends_with("/x:5"));
  EXPECT_TRUE(table.where(2).ends_with("/x:7"));
  EXPECT_EQ(table.cell(1, 1), "\"\n\"");
  const Table moved = Table(read(TableForm::kCsv, "a\nb\n"));
  EXPECT_EQ(moved.cell(0, 0), "b");
}

TEST_F(Tables, GlueFilesHaveNoQuoting) {
  const std::string text = "a\tb\n\"x\ty\n";
  EXPECT_EQ(cells(TableForm::kGlue, text, 2), "\"x|y/");
  EXPECT_EQ(fault(TableForm::kTsv, text),
            ":2: a quote is opened but not closed in the row that starts here; close it, or double it if it "
            "belongs to "
            "the text")
      << "the same bytes with quoting";
  EXPECT_EQ(cells(TableForm::kTsv, "a\tb\n\"x\ty\"\tz,z\n", 2), "x\ty|z,z/");
}

TEST_F(Tables, JsonLinesTakeColumnsFromTheFirstLine) {
  const std::string text =
      "{\"text\": \"caf\\u00e9\\n\", \"label\": 3, \"x\": [1, {\"y\": 2}], \"p\": 0.5, \"n\": null, \"t\": "
      "true}\n"
      "\n"
      "{\"label\": \"b\", \"text\": \"\", \"x\": 1, \"p\": -1e3, \"n\": \"\", \"t\": false, \"more\": 1}\r\n";
  EXPECT_EQ(cells(TableForm::kJson, text, 6), "café\n|3||0.5||true/|b|1|-1e3||false/");
  const Table table = read(TableForm::kJson, text);
  EXPECT_EQ(table.column_names(), "text, label, x, p, n, t");
  EXPECT_EQ(table.column("label"), 1U);
  EXPECT_FALSE(table.find_column("more"));
  EXPECT_TRUE(table.where(1).ends_with(":3"));
}

TEST_F(Tables, ReadsAnArrayOfObjects) {
  const std::string text =
      " [\n{\"a\": \"}]\\\"{\", \"b\": {\"c\": [1]}},\n\n {\n\"a\": 2,\n\"b\": null}\n , {\"b\": 4, \"a\": "
      "3}]\n";
  EXPECT_EQ(cells(TableForm::kJson, text, 2), "}]\"{|/2|/3|4/");
  const Table table = read(TableForm::kJson, text);
  EXPECT_TRUE(table.where(0).ends_with("/x:2"));
  EXPECT_TRUE(table.where(1).ends_with("/x:4"));
  EXPECT_TRUE(table.where(2).ends_with("/x:7"));
  EXPECT_EQ(fault(TableForm::kJson, "[]"),
            ":1: the array is empty; give one with an object for each example");
  EXPECT_NE(fault(TableForm::kJson, "[{\"a\": 1}\n{\"a\": 2}]").find(":2: expected a comma"),
            std::string::npos);
  EXPECT_NE(fault(TableForm::kJson, "[{\"a\": 1},\n3]").find(":2: not a JSON object"), std::string::npos);
  EXPECT_NE(fault(TableForm::kJson, "[{\"a\": 1},\n]").find(":2: not a JSON object"), std::string::npos);
  EXPECT_NE(fault(TableForm::kJson, "[{\"a\": 1},\n{\"a\": 2").find(":2: the object that starts here"),
            std::string::npos);
  EXPECT_NE(fault(TableForm::kJson, "[{\"a\": 1}]\nx").find(":2: text goes on"), std::string::npos);
  EXPECT_NE(fault(TableForm::kJson, "\v[{\"a\": 1}]").find(":1: not a JSON object"), std::string::npos);
  EXPECT_NE(fault(TableForm::kJson, "[{\"a\": ]}]").find(":1: not a JSON object"), std::string::npos);
}

TEST_F(Tables, FindsTheSeparatorOfACsv) {
  EXPECT_EQ(cells(TableForm::kCsv, "a;b\n1,5;\"x;y\"\n", 2), "1,5|x;y/");
  EXPECT_EQ(cells(TableForm::kCsv, "a\tb\n1,5\tx;y\n", 2), "1,5|x;y/");
  EXPECT_EQ(cells(TableForm::kCsv, "\"a;;\",b\n1;5,2\n", 2), "1;5|2/") << "quoted ones do not count";
  EXPECT_EQ(cells(TableForm::kCsv, "a\n1;5\n", 1), "1;5/") << "a single column";
  write_text(folder_ / "x", "a|b;c\n1|2;3\n");
  EXPECT_EQ(Table(folder_ / "x", TableForm::kCsv, {.separator = "|"}).cell(0, 1), "2;3");
  EXPECT_EQ(Table(folder_ / "x", TableForm::kGlue, {.separator = ";"}).cell(0, 0), "1|2");
  EXPECT_EQ(Table(folder_ / "x", TableForm::kCsv).cell(0, 0), "1|2") << "the foil";
}

TEST_F(Tables, DeepNestingDoesNotOverflowTheStack) {
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  EXPECT_EQ(cells(TableForm::kJson, "{\"a\": " + deep + ", \"b\": 1}\n", 2), "|1/");
  EXPECT_NE(fault(TableForm::kJson, "{\"a\": " + deep.substr(0, 1000000)), "");
}

TEST_F(Tables, RejectsBadFilesWithLineNumbers) {
  EXPECT_EQ(fault(TableForm::kCsv, "a,b\n1,2\n\"x\ny\",\"z\n"),
            ":3: a quote is opened but not closed in the row that starts here; close it, or double it if it "
            "belongs to "
            "the text");
  EXPECT_EQ(fault(TableForm::kCsv, "a,b\n\"x\ny\",1\n\"x\ny\"\n"),
            ":4: 1 columns where the header has 2; separate columns by one separator each, and put quotes "
            "around text "
            "that holds one");
  EXPECT_NE(fault(TableForm::kCsv, "a,b\n1,2,3\n").find(":2: 3 columns"), std::string::npos);
  EXPECT_EQ(fault(TableForm::kCsv, "a,b\n\"x\"y,1\n"),
            ":2: text goes on behind a closing quote in the row that starts here; double the quotes inside a "
            "quoted "
            "cell");
  EXPECT_EQ(fault(TableForm::kCsv, "\xEF\xBB\xBF\r\n"),
            " is empty; give a comma-separated file with a header line");
  EXPECT_EQ(fault(TableForm::kCsv, "a,b\n"), " has a header but no rows; give a file with examples");
  EXPECT_EQ(fault(TableForm::kJson, "{\"a\": 1}\n{\"a\": }\n"),
            ":2: not a JSON object; give one object a line, or an array of objects, with the same keys");
  EXPECT_NE(fault(TableForm::kJson, "[1]\n").find(":1: not a JSON object"), std::string::npos);
  EXPECT_NE(fault(TableForm::kJson, "{}\n").find(":1: not a JSON object"), std::string::npos);
  EXPECT_EQ(fault(TableForm::kJson, "{\"a\": 1}\n{\"b\": 1}\n"),
            ":2: the key \"a\" is missing; all objects must have the same keys");
  EXPECT_EQ(sentence<DataError>([&] {
              read(TableForm::kCsv, "a,b\n1,2\n").column("c");
            }).substr(folder_.path().string().size()),
            "/x:1: the column \"c\" is missing (there are: a, b); add it to the header line");
  for (const TableForm form : {TableForm::kCsv, TableForm::kTsv, TableForm::kGlue}) {
    EXPECT_TRUE(sentence<DataError>([&] {
                  read(form, "a|b\n1|2\n").column("a");
                }).ends_with("; set separator if its columns are not separated by commas or tabs"));
  }
}

/// What TableFile gives, a row a line.
std::string rows_of(const TableFile& file) {
  std::string all;
  file.for_each_row([&](const TableFile::Row& row) {
    all += std::to_string(row.line) + ":";
    for (const std::string_view cell : row.cells) all.append(cell).append("|");
    all += "\n";
  });
  return all;
}

TEST_F(Tables, AreReadAgainAndAgain) {
  const std::pair<TableForm, std::string> tables[] = {
      {TableForm::kCsv, "a,b\n\"1 \"\"2\"\"\",3\n\"4\n5\",6\n"},
      {TableForm::kGlue, "a\tb\n1 \"2\"\t3\n4 5\t6\n"},
      {TableForm::kJson, "{\"a\": \"1 \\\"2\\\"\", \"b\": 3}\n{\"b\": 6, \"a\": \"4 5\"}\n"}};
  for (const auto& [form, text] : tables) {
    write_text(folder_ / "x", text);
    const TableFile file(folder_ / "x", form);
    EXPECT_EQ(file.column_names(), "a, b");
    const std::string first = rows_of(file);
    EXPECT_TRUE(first.find(":1 \"2\"|3|\n") != first.npos && first.find("5|6|\n") != first.npos) << first;
    EXPECT_EQ(rows_of(file), first);
    const TableFile copy = file;
    EXPECT_EQ(rows_of(copy), first);
  }
}

/// Bytes of this process that are in memory.
int64_t resident() {
  std::ifstream file("/proc/self/statm");
  int64_t whole = 0, resident = 0;
  file >> whole >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST_F(Tables, OfPlainFilesAreNeverWholeInMemory) {
  constexpr int64_t kSize = int64_t{96} << 20;
  const std::string long_cell(1000, 'x');
  std::string numbers = "[1";
  for (int i = 0; i < 500; ++i) numbers += ",1";
  numbers += "]";
  const std::pair<TableForm, std::string> tables[] = {
      {TableForm::kCsv, "\"" + long_cell + "\",y\n"},
      {TableForm::kGlue, long_cell + "\ty\n"},
      {TableForm::kJson, "{\"a\": \"x\", \"b\": " + numbers + "}\n"}};  // whose numbers are no cell
  for (const auto& [form, row] : tables) {
    {
      std::ofstream file(folder_ / "x");
      file << row;
      for (int64_t size = 0; size < kSize; size += static_cast<int64_t>(row.size())) file << row;
    }
    const int64_t before = resident();
    int64_t most = 0, rows = 0;
    const TableFile file(folder_ / "x", form);
    file.for_each_row([&](const TableFile::Row&) {
      if (rows++ % 1000 == 0) most = std::max(most, resident());
    });
    EXPECT_GT(rows, kSize / static_cast<int64_t>(row.size()) - 2);
    EXPECT_LT(most - before, kSize / 2) << row.substr(0, 10);
    if (form != TableForm::kCsv) continue;
    const Table table(folder_ / "x", form);
    EXPECT_EQ(static_cast<int64_t>(table.rows()), rows);
    EXPECT_GT(resident() - before, kSize) << "the foil";
  }
}

TEST_F(Tables, FormatFollowsTheExtension) {
  EXPECT_EQ(Table::form_of("x.csv", false), TableForm::kCsv);
  EXPECT_EQ(Table::form_of("x.jsonl", true), TableForm::kJson);
  EXPECT_EQ(Table::form_of("x.JSON.gz", true), TableForm::kJson);
  EXPECT_EQ(Table::form_of("x.csv.gz", true), TableForm::kCsv);
  EXPECT_EQ(Table::form_of("x.tsv", true), TableForm::kTsv);
  EXPECT_EQ(Table::form_of("x.tsv", false), TableForm::kGlue);
  EXPECT_EQ(Table::form_of("x", false), TableForm::kGlue);
}

}  // namespace
}  // namespace syncopate::corpora
