#include "syncopate/spec/folder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "tests/support/support.h"

namespace syncopate::spec {
namespace {

/// A folder with a run of `workers` that began with so many examples for each.
class ResumedSettings : public testing::Test {
 protected:
  ResumedSettings() {
    start_folder({folder_.path()}, began_ = asked(2, 16));
    test::write_text(folder_ / "checkpoint.safetensors", "");
  }
  static RunSpec asked(int64_t workers, int64_t batch_size, int64_t global_batch = 0) {
    RunSpec spec;
    spec.comm.workers = workers;
    spec.train.batch_size = batch_size;
    spec.train.global_batch = global_batch;
    return spec;
  }
  /// Resumes with these settings, writes them down and returns them.
  RunSpec resumed(RunSpec spec) {
    start_folder(choose_folder(spec, folder_.path().string(), true), spec);
    return spec;
  }
  std::string complaint(const RunSpec& spec) {
    try {
      resumed(spec);
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
  nlohmann::json written() { return nlohmann::json::parse(test::read_text(folder_ / "spec.json")); }

  test::TempDir folder_;
  RunSpec began_;
};

TEST_F(ResumedSettings, SameSettingsStayAsTheyAre) {
  const RunSpec spec = resumed(asked(2, 16));
  EXPECT_EQ(spec.train.batch_size, 16);
  EXPECT_EQ(spec.train.global_batch, 0);
  EXPECT_FALSE(written().contains("began_with"));
}

TEST_F(ResumedSettings, OtherWorkersShareTheSameGlobalBatch) {
  // The same words, the global batch itself, or nothing about it; and again, when spec.json has changed.
  for (const RunSpec& words : {asked(4, 16), asked(1, 0, 32), asked(3, 0), asked(4, 16), asked(2, 16)}) {
    const RunSpec spec = resumed(words);
    EXPECT_EQ(spec.train.batch_size, 0);
    EXPECT_EQ(spec.train.global_batch, 32);
    EXPECT_EQ(spec.examples_per_step(), 32);
    EXPECT_EQ(written().at("comm.workers"), words.comm.workers);
    EXPECT_EQ(written().at("train.global_batch"), 32);
    EXPECT_EQ(written().at("began_with").at("train.batch_size"), 16);
    EXPECT_EQ(written().at("began_with").at("comm.workers"), 2);
  }
}

TEST_F(ResumedSettings, AnotherGlobalBatchIsRefused) {
  EXPECT_NE(complaint(asked(4, 0, 64)).find("train.global_batch was 32 and is 64 now"), std::string::npos);
  EXPECT_NE(complaint(asked(4, 8)).find("train.batch_size was 16 and is 8 now"), std::string::npos);
  EXPECT_NE(complaint(asked(2, 8)).find("train.batch_size was 16 and is 8 now"), std::string::npos);
  EXPECT_NE(complaint(asked(33, 16)).find("less than one example per worker"), std::string::npos);
  RunSpec other = asked(4, 16);
  other.train.seed = 9;
  EXPECT_NE(complaint(other).find("train.seed was 0 and is 9 now"), std::string::npos);
  EXPECT_EQ(complaint(asked(4, 16)), "") << "the foil";
}

TEST_F(ResumedSettings, AccumulatedMicroBatchesCount) {
  test::TempDir folder;
  RunSpec began = asked(2, 8);
  began.train.accumulate = 3;
  start_folder({folder.path()}, began);
  test::write_text(folder / "checkpoint.safetensors", "");
  RunSpec spec = began;
  spec.comm.workers = 1;
  choose_folder(spec, folder.path().string(), true);
  EXPECT_EQ(spec.train.global_batch, 48);
}

TEST_F(ResumedSettings, FolderOfAnotherNumberOfWorkersIsNotFoundByName) {
  RunSpec spec = asked(4, 16);
  try {
    choose_folder(spec, "", true);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("give --out for one that had another number of workers"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace syncopate::spec
