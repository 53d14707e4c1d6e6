#include "syncopate/corpora/tables/glue.h"

#include <gtest/gtest.h>

#include <set>

#include "syncopate/corpora/task.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

using syncopate::test::TempDir;
using syncopate::test::write_text;
using test::sentence;

constexpr const char* kRte =
    "index\tsentence1\tsentence2\tlabel\n"
    "0\tNo \"weapons found.\tWeapons found.\tnot_entailment\n"
    "1\tThe Pope is new.\tA new Pope.\tentailment\n";

TEST(Glue, ReadsPairsByColumnNames) {
  const TempDir folder;
  write_text(folder / "train.tsv", kRte);
  write_text(folder / "dev.tsv", "label\tsentence2\textra\tsentence1\r\nentailment\tB\t\tA\r\n\r\n");
  const TextTask task = load_task({"rte", folder.path()}, Purpose::kTrain);
  ASSERT_EQ(task.train.size(), 2U);
  EXPECT_EQ(task.train[0].a, "No \"weapons found.") << "a quote is a character";
  EXPECT_EQ(task.train[0].b, "Weapons found.");
  EXPECT_EQ(task.train[0].label, 1);
  EXPECT_EQ(task.train[1].label, 0);
  ASSERT_EQ(task.test.size(), 1U);
  EXPECT_EQ(task.test[0].a + task.test[0].b, "AB");
  EXPECT_EQ(task.labels, (std::vector<std::string>{"entailment", "not_entailment"}));
  const TextTask evaluate = load_task({"rte", folder.path()}, Purpose::kEvaluate);
  EXPECT_TRUE(evaluate.train.empty());
  EXPECT_EQ(evaluate.test.size(), 1U);
}

TEST(Glue, ReadsHuggingFacesColumnsAndNumbers) {
  const TempDir folder;
  write_text(folder / "train.jsonl",
             "{\"premise\": \"A\", \"hypothesis\": \"B\", \"label\": 2, \"idx\": 0}\n"
             "{\"premise\": \"C\", \"hypothesis\": \"D\", \"label\": -1, \"idx\": 1}\n"
             "{\"premise\": \"E\", \"hypothesis\": \"F\", \"label\": 0, \"idx\": 2}\n");
  for (const char* part : {"matched", "mismatched"})
    write_text(folder / ("validation_" + std::string(part) + ".json"),
               "[{\"premise\": \"G\", \"hypothesis\": \"H\", \"label\": 1, \"idx\": 0}]");
  const TextTask task = load_task({"mnli", folder.path()}, Purpose::kTrain);
  ASSERT_EQ(task.train.size(), 2U);
  EXPECT_EQ(task.train[0].a + task.train[0].b, "AB");
  EXPECT_EQ(task.train[0].label, 2) << "contradiction";
  EXPECT_EQ(task.train[1].label, 0) << "entailment";
  ASSERT_EQ(task.test.size(), 2U);
  EXPECT_EQ(task.test[1].label, 1);
  EXPECT_EQ(task.notes, std::vector<std::string>{"1 rows without a gold label were skipped"});
  EXPECT_EQ(task.training_notes,
            std::vector<std::string>{
                "classes in the training data: entailment (1), neutral (0), contradiction (1)"});
  EXPECT_EQ(load_task({"mnli", folder / "train.jsonl"}, Purpose::kPredict).test[1].label, -1);
  write_text(folder / "x.jsonl", "{\"sentence1\": \"A\", \"sentence2\": \"B\", \"label\": 3}\n");
  EXPECT_NE(sentence<DataError>([&] {
              load_task({"mnli", folder / "x.jsonl"}, Purpose::kEvaluate);
            }).find("x.jsonl:1: the label \"3\" is not one of mnli's"),
            std::string::npos)
      << "the foil";
}

TEST(Glue, SingleFileIsSplitOnlyForTraining) {
  const TempDir folder;
  std::string text = "sentence\tlabel\n";
  for (int i = 0; i < 50; ++i) text += "text " + std::to_string(i) + "\t" + std::to_string(i % 2) + "\n";
  write_text(folder / "all.tsv", text);
  EXPECT_EQ(load_task({"sst2", folder / "all.tsv"}, Purpose::kEvaluate).test.size(), 50U);
  const TextTask task = load_task({"sst2", folder / "all.tsv"}, Purpose::kTrain);
  EXPECT_EQ(task.test.size(), 5U);
  EXPECT_EQ(task.train.size(), 45U);
  std::set<std::string> all;
  for (const auto& example : task.train) all.insert(example.a);
  for (const auto& example : task.test) all.insert(example.a);
  EXPECT_EQ(all.size(), 50U) << "every example once";
  const TextTask again = load_task({"sst2", folder / "all.tsv"}, Purpose::kTrain);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(again.test[i].a, task.test[i].a);
  EXPECT_NE(task.test[4].a, "text 49") << "not simply the end or the start of the file";
  write_text(folder / "one.tsv", "sentence\tlabel\nx\t0\n");
  EXPECT_THROW(load_task({"sst2", folder / "one.tsv"}, Purpose::kTrain), DataError);
}

TEST(Glue, PredictionNeedsNoLabels) {
  const TempDir folder;
  write_text(folder / "test.tsv", "index\tsentence\n0\tgood\n");
  const TextTask task = load_task({"sst2", folder / "test.tsv"}, Purpose::kPredict);
  EXPECT_EQ(task.test[0].label, -1);
  EXPECT_NE(sentence<DataError>([&] {
              load_task({"sst2", folder / "test.tsv"}, Purpose::kEvaluate);
            }).find("test.tsv:1: the column \"label\" is missing (there are: index, sentence)"),
            std::string::npos);
  write_text(folder / "odd.tsv", "sentence\tlabel\ngood\t?\nbad\t0\n");
  const TextTask odd = load_task({"sst2", folder / "odd.tsv"}, Purpose::kPredict);
  EXPECT_EQ(odd.test[0].label, -1);
  EXPECT_EQ(odd.test[1].label, 0);
}

TEST(Glue, RejectsBadTablesWithLineNumbers) {
  const TempDir folder;
  const auto fault = [&](const std::string& text) {
    write_text(folder / "x.tsv", text);
    return sentence<DataError>([&] { load_task({"rte", folder / "x.tsv"}, Purpose::kEvaluate); });
  };
  EXPECT_EQ(fault(kRte), "");
  EXPECT_EQ(fault("\xEF\xBB\xBF" + std::string(kRte)), "") << "a byte order mark is no part of a name";
  EXPECT_NE(fault(std::string(kRte) + "2\ta\tb\n").find("x.tsv:4: 3 columns where the header has 4"),
            std::string::npos);
  EXPECT_NE(fault(std::string(kRte) + "2\ta\tb\tc\tentailment\n").find("x.tsv:4: 5 columns"),
            std::string::npos);
  EXPECT_NE(fault(std::string(kRte) + "\n3\ta\tb\tentailment\n").find("x.tsv:4: 1 columns"),
            std::string::npos);
  EXPECT_NE(fault(std::string(kRte) + "2\ta\tb\tEntailment\n").find("x.tsv:4: the label \"Entailment\""),
            std::string::npos);
  EXPECT_NE(fault("").find("is empty"), std::string::npos);
  EXPECT_NE(fault("index\tsentence1\tsentence2\tlabel\n").find("no rows"), std::string::npos);
  EXPECT_NE(fault("index\tsentence1\tlabel\n1\ta\tentailment\n").find("\"sentence2\" is missing"),
            std::string::npos);
}

TEST(Glue, ReportsMissingFiles) {
  const TempDir folder;
  EXPECT_THROW(load_task({"rte", {}}, Purpose::kTrain), ConfigError);
  EXPECT_THROW(load_task({"rte", folder / "none"}, Purpose::kTrain), DataError);
  write_text(folder / "train.tsv", kRte);
  EXPECT_EQ(
      sentence<DataError>([&] {
        load_task({"rte", folder.path()}, Purpose::kTrain);
      }),
      folder.path().string() +
          " has no test file named dev, validation, valid or test with the extension .tsv or .csv or .jsonl "
          "or .json (files there: train.tsv); rename one, or give a single file as the data path");
}

TEST(Task, UnknownNameGetsASuggestion) {
  EXPECT_EQ(task_names(), (std::vector<std::string>{"supersense", "hypernym", "csv", "rte", "sst2", "mnli"}));
  EXPECT_EQ(sentence<ConfigError>([&] {
              load_task({"supersence", {}}, Purpose::kTrain);
            }),
            "unknown task \"supersence\"; did you mean \"supersense\"?");
}

constexpr const char* kMnli =
    "index\tsentence1\tsentence2\tlabel1\tgold_label\n"
    "0\tA\tB\tneutral\tcontradiction\n"
    "1\tC\tD\tneutral\tneutral\n";

TEST(Mnli, GlueFolderHasATestSplitInTwoParts) {
  const TempDir folder;
  write_text(folder / "train.tsv", std::string(kMnli) + "2\tE\tF\tneutral\tentailment\n");
  write_text(folder / "dev_matched.tsv", kMnli);
  write_text(folder / "dev_mismatched.tsv", std::string(kMnli) + "2\tE\tF\tneutral\tentailment\n");
  write_text(folder / "test_matched.tsv", "index\tsentence1\tsentence2\n0\tA\tB\n");
  const TextTask task = load_task({"mnli", folder.path()}, Purpose::kTrain);
  EXPECT_EQ(task.labels, (std::vector<std::string>{"entailment", "neutral", "contradiction"}));
  EXPECT_EQ(task.train.size(), 3U);
  ASSERT_EQ(task.test.size(), 5U);
  EXPECT_EQ(task.parts, (std::vector<TestPart>{{"matched", 0, 2}, {"mismatched", 2, 5}}));
  EXPECT_EQ(task.test[0].label, 2) << "gold_label, not label1";
  EXPECT_EQ(task.test[4].a + task.test[4].b, "EF");
  EXPECT_TRUE(task.notes.empty());
  EXPECT_EQ(task.training_notes.size(), 1U) << "the classes";
  const TextTask predict = load_task({"mnli", folder / "test_matched.tsv"}, Purpose::kPredict);
  EXPECT_EQ(predict.test.at(0).label, -1);
  EXPECT_TRUE(predict.parts.empty());
}

TEST(Mnli, RowsWithoutAGoldLabelAreSkippedAndCounted) {
  const TempDir folder;
  const std::string row =
      R"({"gold_label": "entailment", "annotator_labels": ["a"], "sentence1": "A", "sentence2": "B"})";
  std::string none = row;
  none.replace(none.find("entailment"), 10, "-");
  write_text(folder / "multinli_1.0_train.jsonl", row + "\n" + none + "\n" + row + "\n");
  write_text(folder / "multinli_1.0_dev_matched.jsonl", row + "\n" + none + "\n");
  write_text(folder / "multinli_1.0_dev_mismatched.jsonl", none + "\n" + row + "\n");
  const TextTask task = load_task({"mnli", folder.path()}, Purpose::kTrain);
  EXPECT_EQ(task.train.size(), 2U);
  EXPECT_EQ(task.test.size(), 2U);
  EXPECT_EQ(task.parts, (std::vector<TestPart>{{"matched", 0, 1}, {"mismatched", 1, 2}}));
  EXPECT_EQ(task.notes[0], "3 rows without a gold label were skipped");
  EXPECT_EQ(load_task({"mnli", folder.path()}, Purpose::kPredict).test.size(), 4U)
      << "to predict, none is needed";
  write_text(folder / "x.jsonl", none + "\n");
  EXPECT_NE(sentence<DataError>([&] {
              load_task({"mnli", folder / "x.jsonl"}, Purpose::kEvaluate);
            }).find("has no row with a gold label"),
            std::string::npos);
}

TEST(GlueShared, FindsMnliByItsFileNames) {
  SYNCOPATE_NEED_SHARED(mnli, "data/mnli");
  const TextTask task = load_task({"mnli", mnli}, Purpose::kTrain);
  EXPECT_EQ(task.train.size(), 10000U);
  EXPECT_EQ(task.test.size(), 10000U);
  EXPECT_TRUE(task.parts.empty());
  EXPECT_EQ(task.train[1].label, 1);
  EXPECT_EQ(task.test[1].label, 2);
}

TEST(GlueShared, RteAndSst2HaveTheirPublishedSizes) {
  SYNCOPATE_NEED_SHARED(rte, "data/glue_rte");
  SYNCOPATE_NEED_SHARED(sst2, "data/glue_sst2");
  const TextTask pairs = load_task({"rte", rte}, Purpose::kTrain);
  EXPECT_EQ(pairs.train.size(), 2490U);
  EXPECT_EQ(pairs.test.size(), 277U);
  const auto entailed = [](const TextExample& example) { return example.label == 0; };
  EXPECT_EQ(std::count_if(pairs.train.begin(), pairs.train.end(), entailed), 1249);
  EXPECT_EQ(std::count_if(pairs.test.begin(), pairs.test.end(), entailed), 146);
  EXPECT_EQ(load_task({"rte", rte / "test.tsv"}, Purpose::kPredict).test.at(0).label, -1);
  const TextTask single = load_task({"sst2", sst2}, Purpose::kTrain);
  EXPECT_EQ(single.train.size(), 67349U);
  EXPECT_EQ(single.test.size(), 872U);
}

}  // namespace
}  // namespace syncopate::corpora
