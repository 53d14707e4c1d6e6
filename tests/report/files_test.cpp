// The files of a comparison, and that nothing from a name or a setting does anything in them.
#include "syncopate/report/files/files.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/process.h"
#include "syncopate/base/text.h"
#include "syncopate/report/plain_text.h"
#include "syncopate/report/terminal.h"
#include "tests/report/made_sweep.h"

namespace syncopate::report {
namespace {

using Json = nlohmann::ordered_json;

/// RFC 4180, read as its grammar says.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1);
  std::string field;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      EXPECT_EQ(field, "") << "a quote inside of a plain field";
      quoted = true;
    } else if (c == ',' || c == '\n') {
      rows.back().push_back(field);
      field.clear();
      if (c == '\n') rows.emplace_back();
    } else if (c != '\r') {
      field += c;
    }
  }
  rows.pop_back();
  return rows;
}

size_t column(const std::vector<std::vector<std::string>>& rows, const std::string& name) {
  const auto found = std::find(rows[0].begin(), rows[0].end(), name);
  EXPECT_NE(found, rows[0].end()) << name;
  return static_cast<size_t>(found - rows[0].begin());
}

const std::vector<std::string> kHostile{"</script><img src=x onerror=alert(1)>",
                                        "=HYPERLINK(\"http://evil.example\",\"click\")",
                                        "a | b\nc",
                                        "[x](javascript:alert(1)) `code` **bold**",
                                        "@SUM(1)",
                                        "-2+3",
                                        "\x1b[31mred",
                                        "quote \" and, comma"};

class Files : public ::testing::Test {
 protected:
  Files() {
    made_.arm("single", "single", 1, {0.80, 0.81, 0.79}, 1000);
    for (const std::string& name : kHostile) made_.arm(name, "ddp", 2, {0.80, 0.82, 0.79}, 1900);
    for (MadeRun& run : made_.runs) {
      run.settings["strategy.note"] = run.name;
      run.record.provenance.host = kHostile[0];
    }
    made_.sweep["title"] = kHostile[0];
  }
  MadeSweep made_;
};

TEST_F(Files, CsvHasARowForEachRunAndNoFormula) {
  const Results results = made_.analysed();
  const auto rows = read_csv(csv_text(results));
  ASSERT_EQ(rows.size(), 1 + made_.runs.size());
  const size_t name = column(rows, "name"), note = column(rows, "strategy.note");
  for (size_t i = 1; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), rows[0].size());
    for (const std::string& field : rows[i]) {
      if (field.empty() || parse_number(field)) continue;
      EXPECT_EQ(std::string("=+-@").find(field[0]), std::string::npos) << field;
    }
    const std::string& own = made_.runs[i - 1].name;
    EXPECT_TRUE(rows[i][name] == own || rows[i][name] == "'" + own) << rows[i][name];
    EXPECT_EQ(rows[i][name], rows[i][note]);
    EXPECT_EQ(parse_number(rows[i][column(rows, "accuracy")]),
              made_.runs[i - 1].record.eval->measures["accuracy"]);
  }
  EXPECT_EQ(rows[1][column(rows, "seed")], "1");
  EXPECT_EQ(rows[1][column(rows, "workers")], "1");
  EXPECT_EQ(rows[1][column(rows, "ms_p50")], "") << "not known is empty";
}

TEST_F(Files, JsonIsWholeAndNamesStayWhatTheyAre) {
  const Results results = made_.analysed();
  const Json json = Json::parse(json_text(results));
  EXPECT_EQ(json.at("format"), "syncopate-results-1");
  ASSERT_EQ(json.at("arms").size(), 1 + kHostile.size());
  for (size_t i = 0; i < kHostile.size(); ++i) EXPECT_EQ(json.at("arms")[i + 1].at("name"), kHostile[i]);
  const Json& arm = json.at("arms")[1];
  for (const char* field : {"id",
                            "name",
                            "family",
                            "strategy",
                            "codec",
                            "workers",
                            "axes",
                            "settings",
                            "state",
                            "runs",
                            "checks",
                            "excluded",
                            "flags",
                            "quality",
                            "difference",
                            "quality_at_time",
                            "time_to_target",
                            "speedup",
                            "efficiency",
                            "words",
                            "ms",
                            "ms_p50",
                            "ms_p95",
                            "parts",
                            "examples_per_s",
                            "train_seconds",
                            "seconds_per_epoch",
                            "examples",
                            "updates",
                            "global_batch",
                            "bytes",
                            "bandwidth",
                            "peak_memory",
                            "noise_scale",
                            "staleness",
                            "outside_load",
                            "worker_spread",
                            "price",
                            "pareto",
                            "tuning"})
    EXPECT_TRUE(arm.contains(field)) << field;
  for (const char* field : {"id",
                            "arm",
                            "seed",
                            "kind",
                            "folder",
                            "state",
                            "message",
                            "settings",
                            "quality",
                            "loss",
                            "speedup",
                            "ms",
                            "examples_per_s",
                            "train_seconds",
                            "examples",
                            "steps",
                            "bytes_per_step",
                            "outside_load",
                            "peak_memory",
                            "collapsed",
                            "reused",
                            "parts",
                            "command",
                            "host",
                            "cpu",
                            "cores",
                            "threads",
                            "date",
                            "version",
                            "commit",
                            "start_hash",
                            "data_hash",
                            "curve",
                            "evals",
                            "progress"})
    EXPECT_TRUE(json.at("runs")[0].contains(field)) << field;
  EXPECT_EQ(arm.at("ms_p50"), nullptr);
  EXPECT_EQ(arm.at("quality").at("values").size(), 3u);
}

TEST_F(Files, MarkdownHasNoMarkupOfAName) {
  const std::string text = markdown_text(made_.analysed());
  EXPECT_EQ(text.find("<img"), std::string::npos);
  EXPECT_EQ(text.find("</script"), std::string::npos);
  EXPECT_EQ(text.find("[x]("), std::string::npos);
  EXPECT_EQ(text.find("http://"), std::string::npos);
  EXPECT_EQ(text.find(" **bold**"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  size_t rows = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with("| ")) continue;
    ++rows;
    size_t bars = 0;
    for (size_t i = 0; i < line.size(); ++i)
      bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
    EXPECT_EQ(bars, 12u) << line;
  }
  EXPECT_EQ(rows, 2 + kHostile.size());
}

TEST_F(Files, TheTerminalGetsNoControlCharacters) {
  const std::string text = terminal_table(made_.analysed());
  for (const char c : text)
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 32) << static_cast<int>(c);
}

TEST_F(Files, AreWrittenWhole) {
  const Results results = made_.analysed();
  write_results(made_.path(), results);
  const std::string page = test::read_text(made_.path() / "report.html");
  EXPECT_EQ(page.find("<img src=x"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cimg"), std::string::npos);
  for (const char* name : {"results.csv", "results.json", "results.md", "results.xlsx"})
    EXPECT_GT(std::filesystem::file_size(made_.path() / name), 500u) << name;
  for (const auto& entry : std::filesystem::directory_iterator(made_.path()))
    EXPECT_NE(entry.path().extension(), ".part");
  const test::TempDir other;
  write_results(made_.path(), results, {.page_at = other / "p.html"});
  EXPECT_TRUE(std::filesystem::exists(other / "p.html"));
  EXPECT_THROW(write_results(other / "none", results), DataError);
}

TEST_F(Files, TheWorkbookHasNumbersAsNumbersAndNoFormula) {
  write_workbook(made_.path() / "book.xlsx", made_.analysed());
  const test::CommandResult read = test::run_command(
      {"python3", "-c",
       "import sys, zipfile, re\n"
       "book = zipfile.ZipFile(sys.argv[1])\n"
       "sheets = [book.read(n).decode() for n in sorted(book.namelist()) if 'worksheets/sheet' in n]\n"
       "print(len(sheets), sum('<f>' in s for s in sheets), '<img' in ''.join(sheets))\n"
       "print('onerror=alert(1)' in ''.join(sheets), '<v>0.8</v>' in sheets[1] or '<v>0.80' in sheets[1])\n",
       (made_.path() / "book.xlsx").string()});
  EXPECT_EQ(read.out, "3 0 False\nTrue True\n") << read.err;
}

TEST(PlainText, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(utf8("gr\xC3\xB6\xC3\x9F"
                 "er"),
            "gr\xC3\xB6\xC3\x9F"
            "er");
  EXPECT_EQ(utf8("a\xFF"
                 "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(utf8("\xC3"), "\xEF\xBF\xBD") << "cut off";
  EXPECT_EQ(utf8(std::string("\xEF\xBF\xBF")), "\xEF\xBF\xBD") << "no character of XML";
  EXPECT_EQ(one_line("a\nb\x1b\x7f"), "a b  ");
  EXPECT_EQ(one_line("sin\u009b31mgle\u202e"), "sin31mgle") << "no control of a terminal, no turned order";
  EXPECT_EQ(one_line("\u0080a\u009f\u202ab\u2066c\u2069"), "abc");
  EXPECT_EQ(one_line("\u00a0é\u2029−…\u2065"), "\u00a0é\u2029−…\u2065") << "foil: their neighbours stay";
}

TEST(FilesOf, AFolderWhoseNameIsNotText) {
  MadeSweep made;
  made.planned = false;
  made.arm("single", "single", 1, {0.8, 0.9}, 1000);
  made.write();
  const std::filesystem::path odd = made.path() / "run\xFF";
  std::filesystem::rename(made.folder_of(1), odd);
  const Results results = analyse(made.path());
  EXPECT_EQ(results.arms[0].quality.n, 2);
  write_results(made.path(), results);
  const Json json = Json::parse(test::read_text(made.path() / "results.json"));
  EXPECT_EQ(json.at("runs")[1].at("folder"), "run\xEF\xBF\xBD");
  EXPECT_EQ(analyse(odd).arms.size(), 1u);
}

constexpr const char* kTable =
    R"(                    N  n    accuracy %              difference  speed    ms  comp+exch  sent  notes
──────────────────  ─  ─  ────────────  ──────────────────────  ─────  ────  ─────────  ────  ─────
single              1  3  80.00 ± 2.48                baseline  1.00x  32.0   24.0+0.0   0 B
ddp                 2  3  80.20 ± 2.24  +0.20 ± 0.25 undecided  1.80x  17.8   13.3+4.4  1 MB      1
local-sgd, every 8  2  3  78.00 ± 6.57  −2.00 ± 6.57 undecided  1.90x  16.8   12.6+4.2  1 MB      2
fewer               2  3  80.00 ± 2.48                left out  9.00x   3.6    2.7+0.9  1 MB    3 4
broken              2  0        failed                                                            5
)";

TEST(Terminal, IsThisTable) {
  MadeSweep made;
  made.arm("single", "single", 1, {0.80, 0.81, 0.79}, 1000);
  made.arm("ddp", "ddp", 2, {0.802, 0.811, 0.793}, 1800);
  made.arm("local-sgd, every 8", "local-sgd", 2, {0.75, 0.80, 0.79}, 1900);
  made.arm("fewer", "ddp", 2, {0.80, 0.81, 0.79}, 9000);
  made.arm("broken", "ddp", 2, {0.8}, 9000);
  for (MadeRun* run : made.runs_of("fewer")) run->record.examples = 320;
  made.runs.back().state = std::string("diverged");
  const std::string text = terminal_table(made.analysed());
  EXPECT_EQ(text.substr(0, text.find("N workers")), kTable) << text;
  size_t widest = 0;
  for (const std::string_view line : split(text, '\n')) widest = std::max(widest, columns_of(line));
  EXPECT_LE(widest, 100u) << text;
  EXPECT_NE(text.find("left out: consumed 320 examples"), std::string::npos) << text;
  EXPECT_NE(text.find("seed 1 diverged"), std::string::npos) << text;
}

}  // namespace
}  // namespace syncopate::report
