#include "syncopate/report/comparison.h"

#include <gtest/gtest.h>

#include <limits>

#include "syncopate/base/text.h"

namespace syncopate::report {
namespace {

using Cells = std::vector<std::string>;

record::RunRecord measured(double examples_per_s, double accuracy) {
  record::RunRecord record;
  record.ms_per_iteration = 41.55;
  record.compute_ms = 30.25;
  record.exchange_ms = 8;
  record.examples_per_s = examples_per_s;
  record.bytes_sent_per_step = 1.5e6;
  record.train_loss = 0.12345;
  record.eval = record::EvalRecord{};
  record.eval->measures["accuracy"] = accuracy;
  return record;
}

/// The lines of a table.
Cells lines_of(const std::string& table) {
  Cells lines;
  for (const std::string_view line : split(table, '\n')) lines.emplace_back(line);
  EXPECT_EQ(lines.back(), "") << "ends with a newline";
  lines.pop_back();
  return lines;
}

/// Cells are apart by two spaces or more.
Cells cells_of(std::string_view line) {
  Cells cells;
  while (!line.empty()) {
    const size_t end = std::min(line.find("  "), line.size());
    cells.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
  }
  return cells;
}

/// The cells of the row that begins with `name`.
Cells row_of(const std::string& table, const std::string& name) {
  for (const std::string& line : lines_of(table)) {
    if (line.starts_with(name + " ")) return cells_of(line);
  }
  ADD_FAILURE() << "no row " << name << " in\n" << table;
  return {};
}

TEST(Comparison, IsThisTable) {
  EXPECT_EQ(comparison_table({{"", "single", 1, measured(100, 0.5)},
                              {"", "ddp", 2, measured(185, 0.875)},
                              {"", "hogwild", 4, std::nullopt}}),
            "strategy  workers  ms/iteration  compute  exchange  examples/s  speed-up  sent/worker/step  "
            "final loss  accuracy\n"
            "────────  ───────  ────────────  ───────  ────────  ──────────  ────────  ────────────────  "
            "──────────  ────────\n"
            "single          1          41.5     30.2       8.0         100     1.00x            1.5 MB      "
            "0.1235   50.00 %\n"
            "ddp             2          41.5     30.2       8.0         185     1.85x            1.5 MB      "
            "0.1235   87.50 %\n"
            "hogwild         4      diverged\n");
}

TEST(Comparison, SpeedUpIsAgainstSingleWhereverItStands) {
  const std::string table = comparison_table({{"", "ddp", 2, measured(150, 0.5)},
                                              {"", "single", 1, measured(100, 0.5)},
                                              {"", "local-sgd", 2, measured(50, 0.5)}});
  EXPECT_EQ(row_of(table, "ddp").at(6), "1.50x");
  EXPECT_EQ(row_of(table, "single").at(6), "1.00x");
  EXPECT_EQ(row_of(table, "local-sgd").at(6), "0.50x");
}

TEST(Comparison, TheFirstSingleThatRanIsTheBaseline) {
  const std::string table = comparison_table({{"broken", "single", 1, std::nullopt},
                                              {"base", "single", 1, measured(100, 0.5)},
                                              {"larger", "single", 1, measured(400, 0.5)},
                                              {"two", "ddp", 2, measured(200, 0.5)}});
  EXPECT_EQ(row_of(table, "base").at(6), "1.00x");
  EXPECT_EQ(row_of(table, "larger").at(6), "4.00x");
  EXPECT_EQ(row_of(table, "two").at(6), "2.00x");
}

TEST(Comparison, HasNoSpeedUpWithoutSingle) {
  const std::string table =
      comparison_table({{"", "ddp", 2, measured(150, 0.5)}, {"", "single", 1, std::nullopt}});
  EXPECT_EQ(row_of(table, "ddp").at(6), "–");
  EXPECT_EQ(table.find("x "), std::string::npos) << table;
}

TEST(Comparison, ADivergedRowHasNoFigures) {
  const std::string table =
      comparison_table({{"", "single", 1, measured(100, 0.5)}, {"", "ddp", 2, std::nullopt}});
  EXPECT_EQ(row_of(table, "ddp"), (Cells{"ddp", "2", "diverged"}));
  EXPECT_EQ(row_of(table, "single").size(), 10u);
}

TEST(Comparison, AMissingMeasureIsADash) {
  record::RunRecord never = measured(100, 0), other = measured(100, 0);
  never.eval.reset();
  other.eval->measures = {{"perplexity", 12.345}};
  const std::string table = comparison_table({{"scored", "single", 1, measured(100, 0.5)},
                                              {"never", "ddp", 2, never},
                                              {"unmeasured", "ddp", 2, other}});
  // The column is that of the last row with measures.
  EXPECT_EQ(cells_of(lines_of(table)[0]).back(), "perplexity");
  EXPECT_EQ(row_of(table, "scored").back(), "–");
  EXPECT_EQ(row_of(table, "never").back(), "–");
  EXPECT_EQ(row_of(table, "unmeasured").back(), "12.35");
}

TEST(Comparison, TheMeasureIsThatOfTheTask) {
  const auto last_column = [](const std::map<std::string, double>& measures) {
    record::RunRecord record = measured(100, 0);
    record.eval->measures = measures;
    const std::string table = comparison_table({{"", "single", 1, record}});
    return cells_of(lines_of(table)[0]).back() + " " + row_of(table, "single").back();
  };
  EXPECT_EQ(last_column({{"accuracy", 0.25}, {"macro_f1", 0.75}}), "accuracy 25.00 %");
  EXPECT_EQ(last_column({{"exact_match", 50}, {"f1", 61.5}}), "f1 61.50");
  EXPECT_EQ(last_column({{"perplexity", 20}, {"token_accuracy", 0.3}}), "perplexity 20.00");
  EXPECT_EQ(last_column({}), "accuracy –");
}

TEST(Comparison, RowsWithNamesAreCalledByThem) {
  const std::string named =
      comparison_table({{"from both", "single", 1, measured(100, 0.5)}, {"", "ddp", 2, measured(100, 0.5)}});
  EXPECT_EQ(cells_of(lines_of(named)[0]).front(), "row");
  EXPECT_EQ(row_of(named, "from both").at(1), "1");
  EXPECT_EQ(row_of(named, "ddp").at(1), "2") << "one without a name by its strategy";
  EXPECT_EQ(cells_of(lines_of(comparison_table({{"", "ddp", 2, measured(1, 0)}}))[0]).front(), "strategy");
}

TEST(Comparison, ALossThatIsNoNumberIsShownAsThat) {
  record::RunRecord record = measured(100, 0.5);
  record.train_loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(row_of(comparison_table({{"", "single", 1, record}}), "single").at(8), "nan");
}

TEST(Comparison, OfNothingIsAHead) { EXPECT_EQ(lines_of(comparison_table({})).size(), 2u); }

}  // namespace
}  // namespace syncopate::report
