#include "syncopate/spec/recorded.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/spec/folder.h"
#include "tests/support/support.h"

namespace syncopate::spec {
namespace {

class Recorded : public testing::Test {
 protected:
  void SetUp() override {
    trained_.task.name = "csv";
    trained_.task.data = "tweets.csv";
    trained_.task.text = "tweet";
    trained_.task.label = "class";
    trained_.task.max_length = 48;
    trained_.task.mask_rate = 0.3;
    trained_.train.seed = 7;
    trained_.train.steps = 40;
    start_folder({folder_ / "run"}, trained_);
    std::filesystem::create_directories(folder_ / "run/model");
    std::filesystem::create_directories(folder_ / "bert");
  }
  ScoreSpec completed(const std::string& model, const std::vector<std::string>& given, bool predict = false) {
    ScoreSpec spec;
    spec.model = (folder_ / model).string();
    spec.task = "csv";
    spec.columns.text = "mine";
    complete_from_run(
        spec, [&](const std::string& flag) { return std::count(given.begin(), given.end(), flag) > 0; },
        predict);
    return spec;
  }

  test::TempDir folder_;
  RunSpec trained_;
};

TEST_F(Recorded, ASpecIsReadBackWhole) {
  RunSpec read = read_spec(folder_ / "run");
  EXPECT_EQ(read.fields().hash(), trained_.fields().hash());
  EXPECT_EQ(read_spec(folder_ / "run/spec.json").train.steps, 40);
  EXPECT_EQ(read.train.batch_size, 0) << "auto, as it was";
  test::write_text(folder_ / "noted.json", "{\"began_with\": {\"comm.workers\": 2}, \"train.seed\": 3}");
  EXPECT_EQ(read_spec(folder_ / "noted.json").train.seed, 3);
  test::write_text(folder_ / "wrong.json", "{\"train.sede\": 3}");
  EXPECT_THROW(read_spec(folder_ / "wrong.json"), DataError);
  EXPECT_THROW(read_spec(folder_ / "bert"), DataError);
}

TEST_F(Recorded, TheRunFillsInWhatIsNotGiven) {
  for (const char* model : {"run", "run/model", "run/model/"}) {
    const ScoreSpec spec = completed(model, {});
    EXPECT_EQ(spec.task, "csv") << model;
    EXPECT_EQ(spec.data, "tweets.csv");
    EXPECT_TRUE(spec.held_out);
    EXPECT_EQ(spec.columns.text, "tweet");
    EXPECT_EQ(spec.columns.label, "class");
    EXPECT_EQ(spec.max_length, 48);
    EXPECT_EQ(spec.mask_rate, 0.3);
    EXPECT_EQ(spec.seed, 7);
  }
  const ScoreSpec given = completed("run", {"text", "data", "seed"});
  EXPECT_EQ(given.columns.text, "mine");
  EXPECT_EQ(given.data, "");
  EXPECT_FALSE(given.held_out);
  EXPECT_EQ(given.seed, 0);
  EXPECT_EQ(given.columns.label, "class");
  EXPECT_FALSE(completed("run", {}, true).held_out) << "to predict, every row is answered";
}

TEST_F(Recorded, AModelThatNoRunTrainedNeedsItsTask) {
  EXPECT_THROW(completed("bert", {}), ConfigError);
  EXPECT_EQ(completed("bert", {"task"}).columns.text, "mine");
  test::write_text(folder_ / "spec.json", "{}");
  EXPECT_EQ(run_of_model(folder_ / "bert"), std::nullopt) << "only model/ belongs to the folder around it";
}

TEST_F(Recorded, WhatIsNoSettingIsRefused) {
  const auto read = [&](const std::string& text) {
    test::write_text(folder_ / "written.json", text);
    return read_spec(folder_ / "written.json");
  };
  EXPECT_EQ(read("{\"optim.lr\": 0.5, \"extended\": []}").optim.lr, 0.5);
  EXPECT_THROW(read("{\"optim.rate\": 0.5}"), DataError);
  EXPECT_THROW(read("{\"note\": 1, \"optim.lr\": 0.5}"), DataError) << "not a run's own note";
  EXPECT_THROW(read("{}"), DataError);
}

TEST_F(Recorded, OfTwoWaysToSayItTheGivenOneHolds) {
  RunSpec spec = trained_;
  spec.train.epochs = 2;
  prefer_given(spec, {"train.epochs"});
  EXPECT_EQ(spec.train.steps, 0);
  spec.train.batch_size = 4;
  spec.train.global_batch = 32;
  prefer_given(spec, {"train.global_batch"});
  EXPECT_EQ(spec.train.batch_size, 0);
  spec.train.batch_size = 4;
  prefer_given(spec, {"train.global_batch", "train.batch_size"});
  EXPECT_EQ(spec.train.batch_size, 4) << "both were given: that is for validate() to refuse";
}

}  // namespace
}  // namespace syncopate::spec
