#include "syncopate/corpora/splits.h"

#include <gtest/gtest.h>

#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

using test::sentence;

const std::vector<std::string> kEndings{".tsv", ".csv"};

class Splits : public testing::Test {
 protected:
  void touch(const std::vector<std::string>& names) {
    for (const std::string& name : names) syncopate::test::write_text(folder_ / name, "x");
  }
  std::string found(Purpose purpose = Purpose::kTrain) {
    const SplitFiles files = find_splits(folder_.path(), kEndings, purpose);
    EXPECT_FALSE(files.one_file);
    return files.train.filename().string() + " " + files.test.filename().string();
  }
  std::string fault(Purpose purpose = Purpose::kTrain) {
    const std::string said = sentence<DataError>([&] { found(purpose); });
    return said.empty() ? said : said.substr(folder_.path().string().size());
  }
  syncopate::test::TempDir folder_;
};

TEST_F(Splits, ExactNameBeatsANameThatContainsIt) {
  touch({"train.tsv", "dev.tsv", "test.tsv", "test-labeled.tsv", "train_more.tsv", "README.md"});
  EXPECT_EQ(found(), "train.tsv dev.tsv");
  EXPECT_EQ(found(Purpose::kEvaluate), " dev.tsv");
  std::filesystem::remove(folder_ / "dev.tsv");
  EXPECT_EQ(found(), "train.tsv test.tsv");
}

TEST_F(Splits, NamesNeedOnlyContainTheWord) {
  touch({"mnli_Train_10k.tsv", "mnli_validation_10k.tsv", "my-test.csv"});
  EXPECT_EQ(found(), "mnli_Train_10k.tsv mnli_validation_10k.tsv") << "validation comes before test";
  touch({"dev_part.csv"});
  EXPECT_EQ(found(), "mnli_Train_10k.tsv dev_part.csv") << "dev comes before validation";
}

TEST_F(Splits, ReportMissingAndAmbiguousFiles) {
  EXPECT_EQ(fault(),
            " has no training file named train with the extension .tsv or .csv (files there: none); rename "
            "one, or give a single file as the data path");
  touch({"train.json", "train_test.csv"});
  EXPECT_EQ(fault(),
            " has no test file named dev, validation, valid or test with the extension .tsv or .csv (files "
            "there: train_test.csv); rename one, or give a single file as the data path")
      << "the training file tests nothing";
  touch({"a_test.csv", "b_test.tsv"});
  EXPECT_EQ(fault(),
            " has several files that could be \"test\": a_test.csv, b_test.tsv; keep one, or give a single "
            "file as the data path");
  touch({"dev.csv"});
  EXPECT_EQ(fault(), "");
  touch({"train.csv", "train.tsv"});
  EXPECT_EQ(fault(),
            " has several files that could be \"train\": train.csv, train.tsv; keep one, or give a single "
            "file as the data path");
  EXPECT_EQ(fault(Purpose::kEvaluate), "");
}

TEST_F(Splits, SingleFileIsUsedAsIs) {
  touch({"anything"});
  const SplitFiles files = find_splits(folder_ / "anything", kEndings, Purpose::kTrain);
  EXPECT_TRUE(files.one_file);
  EXPECT_TRUE(files.train.empty());
  EXPECT_EQ(files.test, folder_ / "anything");
  EXPECT_NE(sentence<DataError>([&] {
              require_data(folder_ / "none", "a file");
            }).find("none does not exist; give a file as the data path"),
            std::string::npos);
}

}  // namespace
}  // namespace syncopate::corpora
