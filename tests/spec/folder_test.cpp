#include "syncopate/spec/folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
    const record::RunFolder folder{folder_.path()};
    notes_ = resume_settings(spec, folder, extend_);
    start_folder(folder, spec);
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
  bool extend_ = false;
  std::vector<std::string> notes_;
};

TEST(FolderAround, IsTheSameHoweverAFolderIsCalled) {
  for (const char* name : {"runs/a", "runs/a/", "runs//a", "runs/./a/", "runs/b/../a"})
    EXPECT_EQ(folder_around(name), "runs") << name;
  EXPECT_EQ(folder_around("a"), "");
  EXPECT_EQ(folder_around("a/"), "");
  EXPECT_EQ(folder_around("/runs/a/"), "/runs");
  const auto here = std::filesystem::current_path();
  EXPECT_EQ(folder_around("."), here.parent_path());
  EXPECT_EQ(folder_around("./"), here.parent_path());
  EXPECT_EQ(folder_around(".."), here.parent_path().parent_path());
}

TEST_F(ResumedSettings, WhatMakesItAnotherRunNeedsAWord) {
  RunSpec longer = asked(2, 16);
  longer.train.steps = 500;
  longer.optim.lr = 0.25;
  const std::string refusal = complaint(longer);
  EXPECT_NE(refusal.find("optim.lr was 0.0005 and is 0.25 now, train.steps was 0 and is 500 now"),
            std::string::npos)
      << refusal;
  EXPECT_NE(refusal.find("add --extend"), std::string::npos) << refusal;
  EXPECT_FALSE(written().contains("extended")) << "a refusal leaves no trace";
  extend_ = true;
  EXPECT_EQ(complaint(longer), "");
  EXPECT_EQ(notes_.size(), 2u);
  EXPECT_EQ(written().at("train.steps"), 500);
  ASSERT_EQ(written().at("extended").size(), 2u);
  EXPECT_EQ(written().at("extended")[1].at("was"), 0);
  EXPECT_EQ(written().at("extended")[1].at("is"), 500);
  extend_ = false;
  EXPECT_EQ(complaint(longer), "") << "now these are its settings";
  EXPECT_EQ(written().at("extended").size(), 2u);
}

TEST_F(ResumedSettings, AnOlderRunKeepsItsExamplesInOrder) {
  nlohmann::json older = written();
  ASSERT_EQ(older.erase("train.arrange"), 1u);
  test::write_text(folder_ / "spec.json", older.dump());
  EXPECT_FALSE(resumed(asked(2, 16)).train.arrange);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find("train.arrange stays false"), std::string::npos) << notes_[0];
  EXPECT_EQ(written().at("train.arrange"), false);
  EXPECT_FALSE(resumed(asked(2, 16)).train.arrange) << "again, by the same command";
  RunSpec given = asked(2, 16);
  given.train.arrange = false;
  resumed(given);
  EXPECT_TRUE(notes_.empty()) << "that is how it is";
}

TEST_F(ResumedSettings, ARunKeepsItsArrangement) {
  RunSpec other = asked(2, 16);
  other.train.arrange = false;
  EXPECT_TRUE(resumed(other).train.arrange);
  EXPECT_EQ(notes_, (std::vector<std::string>{"train.arrange stays true, as when the run began"}));
}

TEST_F(ResumedSettings, WhatDecidesNothingIsSaidAndThatIsAll) {
  RunSpec patient = asked(2, 16);
  patient.comm.timeout = 5;
  EXPECT_EQ(complaint(patient), "");
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find("comm.timeout was 60"), std::string::npos) << notes_[0];
  EXPECT_EQ(complaint(patient), "");
  EXPECT_TRUE(notes_.empty()) << "the foil: nothing changed";
}

TEST_F(ResumedSettings, EvaluationsCountWhereSomethingChooses) {
  RunSpec often = asked(2, 16);
  often.train.eval_every = std::string("10");
  EXPECT_EQ(complaint(often), "");
  RunSpec chooses = often;
  chooses.train.patience = 3;
  extend_ = true;
  ASSERT_EQ(complaint(chooses), "");
  extend_ = false;
  chooses.train.eval_every = std::string("20");
  EXPECT_NE(complaint(chooses).find("train.eval_every was \"10\" and is \"20\" now; add --extend"),
            std::string::npos)
      << complaint(chooses);
}

TEST_F(ResumedSettings, WhatDoesNotFitIsRefusedWhateverIsSaid) {
  extend_ = true;
  RunSpec other = asked(2, 16);
  other.strategy.name = std::string("local-sgd");
  EXPECT_NE(complaint(other).find("--init-from"), std::string::npos) << complaint(other);
}

TEST(ClaimedFolders, OfTwoRunsStartedTogetherTheSecondTakesTheNextName) {
  const test::TempDir folder;
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  {
    RunSpec spec;
    const std::string name = "runs/" + spec.name();
    for (const char* file : {"spec.json", "DONE"}) {
      std::filesystem::create_directories(name);
      test::write_text(std::filesystem::path(name) / file, "{}");
    }
    const ClaimedFolder first = claim_folder(spec, {}), second = claim_folder(spec, {});
    EXPECT_EQ(first.folder.path.string(), name + "-2");
    EXPECT_EQ(second.folder.path.string(), name + "-3");
  }
  std::filesystem::current_path(here);
}

TEST(ClaimedFolders, AreOneProcessAtATime) {
  const test::TempDir folder;
  RunSpec spec;
  const FolderRequest request{.out = folder / "run", .command = "syncopate train --seed 1"};
  {
    const ClaimedFolder first = claim_folder(spec, request);
    EXPECT_TRUE(first.fresh);
    try {
      claim_folder(spec, request);
      FAIL() << "two runs in one folder";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("syncopate train --seed 1"), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("process " + std::to_string(::getpid())), std::string::npos);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "run")) << "nothing was written into it";
  const ClaimedFolder next = claim_folder(spec, request);
  EXPECT_TRUE(std::filesystem::exists(folder / "run"));
}

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
  resume_settings(spec, {folder.path()}, false);
  EXPECT_EQ(spec.train.global_batch, 48);
}

TEST_F(ResumedSettings, FolderOfAnotherNumberOfWorkersIsNotFoundByName) {
  RunSpec spec = asked(4, 16);
  try {
    choose_folder(spec, {.out = "", .resume = true});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("give --out for one that had another number of workers"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace syncopate::spec
