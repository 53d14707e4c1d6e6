#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <thread>

#include "syncopate/corpora/task.h"
#include "tests/support/fixtures.h"
#include "tests/support/image_files.h"
#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

using syncopate::test::TempDir;
using syncopate::test::write_text;
using test::sentence;
using Labels = std::vector<std::string>;

class Csv : public testing::Test {
 protected:
  Csv() {
    source_ = {.task = "csv",
               .path = folder_.path(),
               .text = "text",
               .text_pair = {},
               .label = "kind",
               .labels = {}};
  }
  void write(const std::string& name, const std::string& text) { write_text(folder_ / name, text); }
  TextTask load(Purpose purpose = Purpose::kTrain) { return load_task(source_, purpose); }
  template <typename Kind>
  std::string fault(Purpose purpose = Purpose::kTrain) {
    return sentence<Kind>([&] { load(purpose); });
  }
  static int64_t count(const TextTask& task, int64_t label) {
    return std::count_if(task.train.begin(), task.train.end(),
                         [&](const TextExample& example) { return example.label == label; });
  }
  TempDir folder_;
  TextSource source_;
};

TEST_F(Csv, LabelsComeFromTheTrainingFile) {
  write("train.csv", "kind,text\n10,a\n9,b\n10,c\n-1,d\n");
  write("test.csv", "text,kind\n\"x, y\",9\n");
  const TextTask numbers = load();
  EXPECT_EQ(numbers.labels, (Labels{"-1", "9", "10"})) << "integers in their order";
  EXPECT_EQ(numbers.train[0].label, 2);
  EXPECT_EQ(numbers.test[0].a, "x, y");
  EXPECT_EQ(numbers.test[0].label, 1);
  EXPECT_EQ(numbers.training_notes, Labels{"classes in the training data: -1 (1), 9 (1), 10 (2)"});
  EXPECT_TRUE(load(Purpose::kEvaluate).notes.empty());
  write("train.csv", "kind,text\n10,a\n9,b\nx,c\n");
  EXPECT_EQ(load().labels, (Labels{"10", "9", "x"})) << "else as texts";
}

TEST_F(Csv, RejectsUnknownLabelsWithLineNumbers) {
  write("train.csv", "kind,text\ngood,a\nbad,b\n");
  write("test.csv", "kind,text\ngood,\"x\ny\"\nugly,z\n");
  EXPECT_EQ(fault<DataError>(), (folder_ / "test.csv").string() +
                                    ":4: the label \"ugly\" is not among those trained on (bad, good); "
                                    "correct it, or train on rows that have it");
  source_.labels = {"good", "ugly", "bad"};
  EXPECT_EQ(load().labels, source_.labels) << "a trained model's labels are the authority";
  EXPECT_EQ(load().test[1].label, 1);
  source_.labels = {"good"};
  EXPECT_NE(fault<DataError>().find("train.csv:3: the label \"bad\""), std::string::npos);
  EXPECT_EQ(load(Purpose::kPredict).test[1].label, -1);
  source_.labels = {};
  write("test.csv", "kind,text\n,z\n");
  EXPECT_NE(fault<DataError>().find("test.csv:2: the label is empty; fill it in or remove the row"),
            std::string::npos);
}

TEST_F(Csv, RowsWithoutTextAreSkippedAndCounted) {
  write("train.tsv", "kind\ttext\tmore\n0\ta\tx\n1\t \t\n1\t\ty\n");
  write("dev.tsv", "kind\ttext\tmore\n0\t\t\n1\tb\tz\n");
  EXPECT_EQ(load().notes.back(), "3 rows without text were skipped");
  EXPECT_EQ(load().train.size(), 1U);
  source_.text_pair = "more";
  const TextTask pairs = load();
  EXPECT_EQ(pairs.notes.back(), "2 rows without text were skipped");
  ASSERT_EQ(pairs.train.size(), 2U);
  EXPECT_EQ(pairs.train[0].b, "x");
  write("dev.tsv", "kind\ttext\tmore\n0\t\t\n");
  EXPECT_NE(fault<DataError>().find("has no text in the column \"text\"; choose another text column"),
            std::string::npos);
}

TEST_F(Csv, RejectsInvalidLabelsWithLineNumbers) {
  write("train.csv", "kind,text\na,x\ncaf\xe9,y\n");
  write("test.csv", "kind,text\na,x\n");
  EXPECT_NE(fault<DataError>().find("train.csv:3: byte 17 of the file (0xe9) is not UTF-8"),
            std::string::npos);
  std::string rows = "kind,text\n";
  for (int i = 0; i < 2001; ++i) rows += fmt::format("id{},x\n", i);
  write("train.csv", rows);
  EXPECT_NE(fault<DataError>().find("is this the column with the label?"), std::string::npos);
  const std::string header = "kind,text\n",
                    most = rows.substr(header.size(), rows.find("id2000") - header.size());
  write("train.csv", header + most);
  write("test.csv", "kind,text\nid0,x\n");
  EXPECT_NE(fault<DataError>().find("2000 different values in 2000 rows, such as \"id0\": it looks like ids"),
            std::string::npos);
  write("train.csv", header + most + most);
  const TextTask many = load();
  EXPECT_EQ(many.labels.size(), 2000u);
  EXPECT_EQ(many.notes[0],
            "warning: there are 2000 classes in 4000 rows; look whether this is the column with the label");
  ASSERT_EQ(many.training_notes.size(), 1u);
  EXPECT_NE(many.training_notes[0].find("id1004 (2), id1005 (2) and 1990 more"), std::string::npos);
}

TEST_F(Csv, ChecksWhatTheLabelsAre) {
  write("test.csv", "kind,text\na,x\n");
  write("train.csv", "kind,text\na,x\na,y\n");
  EXPECT_NE(fault<DataError>().find("train.csv:2: every row has the label \"a\""), std::string::npos);
  EXPECT_EQ(fault<DataError>(Purpose::kEvaluate), "") << "one class may be tested on";
  write("train.csv", "kind,text\na,x\nb,y\na ,z\n");
  EXPECT_NE(fault<DataError>().find("train.csv:4: the labels \"a\" and \"a \" differ by white space alone"),
            std::string::npos);
  write("train.csv", "kind,text\na,x\nb,y\nB,z\n");
  EXPECT_EQ(fault<DataError>(), "");
  EXPECT_NE(load().notes[0].find("the labels \"B\" and \"b\" differ by upper and lower case alone"),
            std::string::npos);
  write("train.csv", "kind,text\na,x\nb,y\nc,z\n");
  EXPECT_EQ(load().training_notes, Labels{"classes in the training data: a (1), b (1), c (1)"});
  EXPECT_EQ(load().notes, Labels{}) << "the foil";
}

TEST_F(Csv, ReadsJsonArraysSemicolonsAndGzip) {
  source_.path = folder_ / "x.json";
  write("x.json", "[{\"text\": \"one\", \"kind\": 1},\n {\"text\": \"two\", \"kind\": 0}]");
  EXPECT_EQ(load(Purpose::kEvaluate).test[1].a, "two");
  source_.path = folder_ / "x.csv.gz";
  write("x.csv.gz", test::gzipped("kind;text\n1;\"one, two\"\n0;three; \n"));
  EXPECT_NE(fault<DataError>(Purpose::kEvaluate).find("x.csv.gz:3: 3 columns where the header has 2"),
            std::string::npos);
  write("x.csv.gz", test::gzipped("kind;text\n1;\"one; two\"\n0;three, four\n"));
  EXPECT_EQ(load(Purpose::kEvaluate).test[0].a, "one; two");
  source_.form.separator = ",";
  EXPECT_NE(
      fault<ConfigError>(Purpose::kEvaluate).find("x.csv.gz has no text column \"text\"; it has: kind;text"),
      std::string::npos)
      << "the foil";
  source_.text = source_.label = "kind;text";
  EXPECT_NE(fault<DataError>(Purpose::kEvaluate).find("x.csv.gz:3: 2 columns where the header has 1"),
            std::string::npos);
  source_.form.separator = "::";
  EXPECT_NE(fault<ConfigError>(Purpose::kEvaluate).find("separator must be auto, tab or one character"),
            std::string::npos);
}

TEST_F(Csv, DecodesLabelsAndTexts) {
  write("x.csv", "kind,text\ncaf\xE9,\x93y\x94\nb,z\n");
  source_.path = folder_ / "x.csv";
  source_.form.encoding = "windows-1252";
  const TextTask task = load(Purpose::kEvaluate);
  EXPECT_EQ(task.labels, (Labels{"b", "café"}));
  EXPECT_EQ(task.test[0].a, "“y”");
  source_.form.encoding = "latin-1";
  EXPECT_NE(load(Purpose::kEvaluate).test[0].a, task.test[0].a) << "the foil";
  source_.form.encoding = "klingon";
  EXPECT_NE(fault<ConfigError>(Purpose::kEvaluate).find("the encoding \"klingon\" is not known"),
            std::string::npos);
}

TEST_F(Csv, PredictionKeepsEveryRow) {
  write("x.csv", "text\nfirst\n\" \"\nthird\n");
  source_.path = folder_ / "x.csv";
  EXPECT_EQ(load(Purpose::kPredict).test.size(), 3u);
}

TEST_F(Csv, RejectsMissingColumns) {
  write("x.csv", "kind,text\n0,a\n1,b\n");
  source_.path = folder_ / "x.csv";
  EXPECT_EQ(fault<ConfigError>(), "");
  source_.text = "";
  EXPECT_EQ(fault<ConfigError>(), "the task csv needs a text column: set text to one of the columns of " +
                                      source_.path.string() + ": kind, text");
  source_.text = "tweet";
  EXPECT_EQ(fault<ConfigError>(),
            source_.path.string() + " has no text column \"tweet\"; it has: kind, text");
  write("y.csv", "kind|text\n0|a\n");
  source_.path = folder_ / "y.csv";
  EXPECT_NE(fault<ConfigError>().find("it has: kind|text; set separator if"), std::string::npos);
  source_.path = folder_ / "x.csv";
  source_.text = "text";
  source_.text_pair = "other";
  EXPECT_NE(fault<ConfigError>().find("has no text_pair column \"other\"; it has: kind, text"),
            std::string::npos);
  source_.text_pair = source_.label = "";
  EXPECT_NE(fault<ConfigError>().find("needs a label column: set label to"), std::string::npos);
  EXPECT_EQ(load(Purpose::kPredict).test.size(), 2U) << "to predict, labels need not be there";
  source_.path = "";
  EXPECT_EQ(
      fault<ConfigError>(),
      "the task csv needs data: give a folder with train.csv and test.csv, or a single file, as its data "
      "path");
}

TEST_F(Csv, SingleFileIsSplitForTraining) {
  std::string text = "{\"text\": \"first\", \"kind\": 7}\n";
  for (int i = 0; i < 29; ++i)
    text += "{\"text\": \"text " + std::to_string(i) + "\", \"kind\": " + std::to_string(i % 3) + "}\n";
  write("x.jsonl", text);
  source_.path = folder_ / "x.jsonl";
  const TextTask task = load();
  EXPECT_EQ(task.train.size(), 27U);
  EXPECT_EQ(task.test.size(), 3U);
  EXPECT_EQ(task.labels, (Labels{"0", "1", "2", "7"}));
  EXPECT_EQ(load(Purpose::kEvaluate).test.size(), 30U);
}

TEST_F(Csv, ReaderGivesTheSameAgain) {
  std::string text = "kind,text\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("{},text {}\n", i % 3 == 0 ? "b" : i % 3 == 1 ? "a" : "10", i * i);
  write("x.csv", text);
  source_.path = folder_ / "x.csv";
  const auto reader = open_task(source_, Purpose::kTrain);
  const TextTask task = load();
  EXPECT_EQ(reader->found().train, 36);
  EXPECT_EQ(reader->found().test, 4);
  EXPECT_EQ(reader->found().labels, (Labels{"10", "a", "b"})) << "not in the order in which they come";
  for (int time = 0; time < 2; ++time) {
    std::map<Split, std::vector<TextExample>> given;
    reader->read([&](Split split, const TextExample& example) { given[split].push_back(example); });
    for (const auto& [split, right] : {std::pair{Split::kTrain, task.train}, {Split::kTest, task.test}}) {
      ASSERT_EQ(given[split].size(), right.size());
      for (size_t i = 0; i < right.size(); ++i) {
        EXPECT_EQ(given[split][i].a, right[i].a);
        EXPECT_EQ(given[split][i].label, right[i].label);
        const int number = std::stoi(right[i].a.substr(5));
        const auto row = static_cast<int>(std::lround(std::sqrt(number)));
        EXPECT_EQ(task.labels[static_cast<size_t>(right[i].label)], row % 3 == 0   ? "b"
                                                                    : row % 3 == 1 ? "a"
                                                                                   : "10");
      }
    }
  }
  EXPECT_EQ(task.training_notes, Labels{fmt::format("classes in the training data: 10 ({}), a ({}), b ({})",
                                                    count(task, 0), count(task, 1), count(task, 2))});
}

TEST_F(Csv, ReaderNoticesThatAFileWasWrittenTo) {
  write("x.csv", "kind,text\na,one two\nb,three four\na,five six\n");
  source_.path = folder_ / "x.csv";
  const auto reader = open_task(source_, Purpose::kTrain);
  const auto read = [&] { reader->read([](Split, const TextExample&) {}); };
  EXPECT_NO_THROW(read()) << "the foil";
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for another time of writing
  std::fstream file(folder_ / "x.csv", std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(std::string("kind,text\na,one").size()));
  file << "\na,";  // one row more, and as many bytes
  file.flush();
  EXPECT_NE(sentence<DataError>(read).find("x.csv was changed while it was read"), std::string::npos);
  file.seekp(static_cast<std::streamoff>(std::string("kind,text\na,one").size()));
  file << " tw";  // as many rows as at first
  file.flush();
  EXPECT_NE(sentence<DataError>(read).find("x.csv was changed while it was read"), std::string::npos);
}

TEST(CsvShared, ReadsTweetsWithQuotedNewlines) {
  SYNCOPATE_NEED_SHARED(tweets, "data/davidson/labeled_data.csv");
  TextSource source{
      .task = "csv", .path = tweets, .text = "tweet", .text_pair = {}, .label = "class", .labels = {}};
  const TextTask task = load_task(source, Purpose::kEvaluate);
  EXPECT_EQ(task.test.size(), 24783U);
  EXPECT_EQ(task.labels, (Labels{"0", "1", "2"}));
  const auto count = [&](int64_t label) {
    return std::count_if(task.test.begin(), task.test.end(),
                         [&](const TextExample& e) { return e.label == label; });
  };
  EXPECT_EQ(count(0), 1430);
  EXPECT_EQ(count(1), 19190);
  EXPECT_EQ(count(2), 4163);
  const TextTask parted = load_task(source, Purpose::kTrain);
  EXPECT_EQ(parted.train.size(), 22305U);
  EXPECT_EQ(parted.test.size(), 2478U);
}

}  // namespace
}  // namespace syncopate::corpora
