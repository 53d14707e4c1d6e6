// `score` counts the rows that `evaluate` counts.
#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/corpora/task.h"
#include "syncopate/tasks/score_file.h"
#include "tests/support/support.h"

namespace syncopate::tasks {
namespace {

using test::write_text;

struct Rows {
  test::TempDir folder;
  PredictionsFile file;

  Rows(const std::string& task, const std::string& name, const std::string& data, int predictions) {
    write_text(folder / name, data);
    std::string answers;
    for (int i = 0; i < predictions; ++i)
      answers += "{\"index\": " + std::to_string(i) + ", \"label\": \"neutral\"}\n";
    write_text(folder / "answers", answers);
    file = {.task = task,
            .data = (folder / name).string(),
            .predictions = (folder / "answers").string(),
            .columns = {.text = "text", .text_pair = "", .label = "label"}};
  }
  int64_t evaluated() const {
    const corpora::TextSource source{.task = file.task, .path = file.data, .text = "text", .label = "label"};
    return static_cast<int64_t>(corpora::load_task(source, corpora::Purpose::kEvaluate).test.size());
  }
};

TEST(ScoreRows, RowsWithoutAGoldLabelDoNotCount) {
  const Rows rows(
      "mnli", "dev.tsv",
      "sentence1\tsentence2\tgold_label\na\tb\tneutral\nc\td\t-\na\tb\tneutral\ne\tf\tentailment\n", 4);
  const auto score = score_file(rows.file);
  EXPECT_EQ(score.at("total"), 3);
  EXPECT_EQ(rows.evaluated(), 3);
  EXPECT_DOUBLE_EQ(score.at("accuracy"), 2.0 / 3) << "the answers behind the row left out are still in place";
  EXPECT_EQ(score.at("missing"), 0);
}

TEST(ScoreRows, RowsWithoutTextDoNotCount) {
  const Rows rows("csv", "dev.csv", "text,label\na,neutral\n\"\",neutral\nb,other\n\" \",other\n", 4);
  EXPECT_EQ(score_file(rows.file).at("total"), 2);
  EXPECT_EQ(rows.evaluated(), 2);
  EXPECT_DOUBLE_EQ(score_file(rows.file).at("accuracy"), 0.5);
}

TEST(ScoreRows, LabelsThatEvaluateRefusesAreRefused) {
  const Rows unlabelled("csv", "dev.csv", "text,label\na,neutral\nb,\n", 2);
  EXPECT_THROW(unlabelled.evaluated(), DataError);
  EXPECT_THROW(score_file(unlabelled.file), DataError);
  const Rows unknown("mnli", "dev.tsv", "sentence1\tsentence2\tgold_label\na\tb\tneutral\na\tc\tnetural\n",
                     2);
  EXPECT_THROW(unknown.evaluated(), DataError);
  EXPECT_THROW(score_file(unknown.file), DataError);
}

}  // namespace
}  // namespace syncopate::tasks
