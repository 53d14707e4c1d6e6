#include "syncopate/tasks/chosen_texts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "syncopate/base/error.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tasks/task_files.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"
#include "tests/support/tasks.h"

namespace syncopate::tasks {
namespace {

namespace fs = std::filesystem;
using corpora::Split;
using corpora::TextExample;
using Texts = std::vector<TextExample>;

std::string text_of(const TextExample& example) {
  return example.a + "|" + example.b + "|" + std::to_string(example.label);
}

std::vector<std::string> texts_of(const Texts& examples) {
  std::vector<std::string> texts;
  for (const TextExample& example : examples) texts.push_back(text_of(example));
  return texts;
}

/// What is chosen where the texts are in memory, by the functions that other tasks call.
struct Right {
  explicit Right(const spec::RunSpec& spec) {
    corpora::TextSource source = text_source(spec.task.name, spec.task.data, spec.task.columns());
    corpora::TextTask task = corpora::load_task(source, corpora::Purpose::kTrain);
    const auto key = [](const TextExample& example) { return corpora::validation_key(example.a, example.b); };
    validation = hold_out_validation(task.train, spec, key, "examples", task.notes);
    if (!spec.validation().path.empty()) {
      source.path = spec.validation().path;
      source.labels = task.labels;
      validation = corpora::load_task(source, corpora::Purpose::kEvaluate).test;
    }
    notes = task.notes;
    notes.insert(notes.end(), task.training_notes.begin(), task.training_notes.end());
    keep_subset(task.train, spec);
    parts = parts_among(task.parts, keep_sample(task.test, spec));
    train = task.train;
    test = task.test;
  }
  Texts train, validation, test;
  std::vector<corpora::TestPart> parts;
  std::vector<std::string> notes;
};

class Chosen : public testing::Test {
 protected:
  Chosen() {
    std::string rows = "text,label\n";
    for (int i = 0; i < 83; ++i)
      rows += "text " + std::to_string(i) + "," +
              (i % 3 == 0   ? "river"
               : i % 3 == 1 ? "garden"
                            : "house") +
              "\n";
    test::write_text(one_file_, rows);
    test::write_text(own_, "text,label\nnever seen,garden\nnor this,river\n");
  }
  spec::RunSpec spec_of(const fs::path& data, const std::string& validation = "", int64_t limit = 0,
                        int64_t test_limit = 0, int64_t seed = 0) const {
    spec::RunSpec spec;
    spec.task.name = "csv";
    spec.task.data = data.string();
    spec.task.text = "text";
    spec.task.label = "label";
    if (!validation.empty()) spec.task.validation = validation;
    spec.task.limit = limit;
    spec.task.test_limit = test_limit;
    spec.train.seed = seed;
    spec.complete();
    return spec;
  }
  static std::map<Split, Texts> read(const ChosenTexts& texts, std::optional<Split> only = {}) {
    std::map<Split, Texts> found;
    texts.read(
        [&](ChosenTexts::Batch batch) {
          Texts& of_split = found[batch.split];
          of_split.insert(of_split.end(), batch.texts.begin(), batch.texts.end());
        },
        only);
    return found;
  }
  static void expect_right(const spec::RunSpec& spec) {
    const ChosenTexts texts(spec);
    const Right right(spec);
    std::map<Split, Texts> found = read(texts);
    EXPECT_EQ(texts_of(found[Split::kTrain]), texts_of(right.train));
    EXPECT_EQ(texts_of(found[Split::kValidation]), texts_of(right.validation));
    EXPECT_EQ(texts_of(found[Split::kTest]), texts_of(right.test));
    EXPECT_EQ(texts.size(),
              static_cast<int64_t>(right.train.size() + right.validation.size() + right.test.size()));
    EXPECT_EQ(texts.parts(), right.parts);
    EXPECT_EQ(texts.notes(), right.notes);
    EXPECT_EQ(texts.validates(), !right.validation.empty());
    for (const Split split : corpora::kSplits) {
      std::map<Split, Texts> alone = read(texts, split);
      EXPECT_EQ(texts_of(alone[split]), texts_of(found[split])) << "read by itself";
      EXPECT_EQ(alone.size(), 1U);
    }
  }

  test::TempDir folder_;
  const fs::path data_ = test::small_table(folder_ / "data"), one_file_ = folder_ / "one.csv",
                 own_ = folder_ / "own.csv";
};

TEST_F(Chosen, AreThoseThatAreChosenInMemory) {
  for (const fs::path& data : {data_, one_file_}) {
    for (const std::string& validation : {std::string(), std::string("0.2"), own_.string()}) {
      for (const int64_t limit : {0, 7, 1000}) {
        for (const int64_t test_limit : {0, 3}) {
          SCOPED_TRACE(data.filename().string() + " " + validation + " " + std::to_string(limit) + " " +
                       std::to_string(test_limit));
          expect_right(spec_of(data, validation, limit, test_limit, 5));
        }
      }
    }
  }
  const auto drawn = [&](int64_t seed) {
    return texts_of(read(ChosenTexts(spec_of(data_, "", 7, 0, seed)))[Split::kTrain]);
  };
  EXPECT_NE(drawn(1), drawn(2)) << "the foil";
}

TEST_F(Chosen, KeepThePartsOfATestSplit) {
  const std::string head = "sentence1\tsentence2\tgold_label\n";
  const auto rows = [&](int from, int to) {
    std::string text = head;
    for (int i = from; i < to; ++i)
      text += "a" + std::to_string(i) + "\tb\t" +
              (i % 4 == 0   ? "-"
               : i % 2 == 0 ? "neutral"
                            : "entailment") +
              "\n";
    return text;
  };
  test::write_text(folder_ / "train.tsv", rows(0, 40));
  test::write_text(folder_ / "dev_matched.tsv", rows(40, 60));
  test::write_text(folder_ / "dev_mismatched.tsv", rows(60, 90));
  for (const int64_t test_limit : {0, 20}) {
    spec::RunSpec spec = spec_of(folder_.path(), "0.2", 0, test_limit);
    spec.task.name = "mnli";
    spec.task.text = spec.task.label = "";
    expect_right(spec);
  }
}

TEST_F(Chosen, NoticesThatAFileWasWrittenTo) {
  const ChosenTexts texts(spec_of(data_, "0.2"));
  EXPECT_EQ(read(texts).size(), 3U) << "the foil";
  std::ofstream(data_ / "train.csv", std::ios::app) << "one more,garden\n";
  EXPECT_NE(test::sentence<DataError>([&] { read(texts); }).find("train.csv was changed while it was read"),
            std::string::npos);
}

}  // namespace
}  // namespace syncopate::tasks
