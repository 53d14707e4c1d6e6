#include "syncopate/record/read_run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/record/lines.h"
#include "syncopate/record/run_folder.h"
#include "tests/record/records.h"
#include "tests/support/support.h"

namespace syncopate::record {
namespace {

using test::read_text;
using test::write_text;

/// A run of two workers and three steps, written as the recorder writes it.
class ReadRun : public testing::Test {
 protected:
  void SetUp() override {
    write_text(folder_.spec(), "{\n  \"task.name\": \"sst2\",\n  \"optim.lr\": 0.001\n}\n");
  }
  void train() {
    write_text(folder_.environment(), "{\"launcher\": \"syncopate\"}\n");
    LineFile steps(folder_.steps(), 0), evals(folder_.evals(), 0);
    LineFile first(folder_.losses(0), 0), second(folder_.losses(1), 0);
    for (const int64_t step : {1, 2, 3}) {
      steps.write(to_json(some_step(step)).dump());
      first.write("0.30000000000000004");
      second.write(step == 2 ? "nan" : "1.5");
    }
    evals.write(to_json(some_eval(3)).dump());
  }
  void finish() {
    train();
    write_text(folder_.result(), to_json(some_run()).dump(2) + "\n");
    write_text(folder_.done(), "");
  }
  static void append(const std::filesystem::path& path, const std::string& text) {
    write_text(path, read_text(path) + text);
  }
  static void replace(const std::filesystem::path& path, const std::string& from, const std::string& to) {
    std::string text = read_text(path);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_text(path, text.replace(at, from.size(), to));
  }
  void expect_damage(const std::string& where, const std::string& why) {
    try {
      read_run(folder_.path);
      ADD_FAILURE() << "nothing was said of " << where;
    } catch (const DataError& error) {
      const std::string said = error.what();
      EXPECT_EQ(said.find((folder_.path / where).string()), 0u) << said;
      EXPECT_NE(said.find(why), std::string::npos) << said;
      EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    }
  }

  test::TempDir temporary_;
  RunFolder folder_{temporary_.path()};
};

TEST_F(ReadRun, GivesBackWhatAFinishedRunWrote) {
  finish();
  const record::Run run = read_run(folder_.path);
  EXPECT_TRUE(run.done);
  EXPECT_EQ(run.spec.at("optim.lr"), 0.001);
  EXPECT_EQ(run.environment.at("launcher"), "syncopate");
  EXPECT_EQ(run.steps, (std::vector<StepRecord>{some_step(1), some_step(2), some_step(3)}));
  EXPECT_EQ(run.evals, std::vector<EvalRecord>{some_eval(3)});
  ASSERT_EQ(run.losses.size(), 2u);
  EXPECT_EQ(run.losses[0], std::vector<double>(3, 0.1 + 0.2)) << "bit for bit";
  EXPECT_EQ(run.losses[1].size(), 3u);
  EXPECT_TRUE(std::isnan(run.losses[1][1])) << "a worker without an example";
  EXPECT_EQ(run.losses[1][2], 1.5);
  EXPECT_EQ(run.result, as_written(some_run()));

  replace(folder_.steps(), "123456789", "123456780");
  EXPECT_NE(read_run(folder_.path).steps, run.steps) << "a foil: another byte is another record";
}

TEST_F(ReadRun, ReadsARunBeforeItsFirstStep) {
  const record::Run run = read_run(folder_.path);
  EXPECT_EQ(run.spec.at("task.name"), "sst2");
  EXPECT_TRUE(run.environment.is_null());
  EXPECT_TRUE(run.steps.empty() && run.evals.empty() && run.losses.empty());
  EXPECT_FALSE(run.result.has_value());
  EXPECT_FALSE(run.done);
}

TEST_F(ReadRun, LeavesOutTheUnfinishedLastLineOfARunThatWasKilled) {
  train();
  const record::Run before = read_run(folder_.path);
  append(folder_.steps(), "{\"step\":4,\"lo");
  append(folder_.evals(), "{");
  append(folder_.losses(1), "1.2");
  const record::Run run = read_run(folder_.path);
  EXPECT_EQ(run.steps, before.steps);
  EXPECT_EQ(run.evals, before.evals);
  EXPECT_EQ(run.losses[1].size(), 3u);
  EXPECT_FALSE(run.done);
  append(folder_.losses(1), "5\n");
  EXPECT_EQ(read_run(folder_.path).losses[1].back(), 1.25) << "a foil: once finished, the line counts";
}

TEST_F(ReadRun, RefusesAnUnfinishedLineInARunThatIsDone) {
  finish();
  append(folder_.losses(1), "1.2");
  expect_damage("loss_1.txt:4", "the last line is cut off");
}

TEST_F(ReadRun, NamesFileAndLineOfADamagedOne) {
  train();
  const std::string whole = read_text(folder_.steps());
  replace(folder_.steps(), "\"step\":2", "\"step\"2");
  expect_damage("steps.jsonl:2: ", "not JSON");
  write_text(folder_.steps(), whole);
  replace(folder_.steps(), "\"step\":3", "\"step\":\"x\"");
  expect_damage("steps.jsonl:3: ", "type must be number");
  write_text(folder_.steps(), whole);
  replace(folder_.steps(), "\"lr\"", "\"lR\"");
  expect_damage("steps.jsonl:1: ", "key 'lr' not found");
  write_text(folder_.steps(), "\n" + whole);
  expect_damage("steps.jsonl:1: ", "not JSON");
  write_text(folder_.steps(), whole + "[]\n");
  expect_damage("steps.jsonl:4: ", "");
  write_text(folder_.steps(), whole);
  EXPECT_EQ(read_run(folder_.path).steps.size(), 3u);

  replace(folder_.evals(), "0.85", "\"good\"");
  expect_damage("evals.jsonl:1: ", "type must be number");
  write_text(folder_.evals(), "");
  replace(folder_.losses(0), "0.3", "0,3");
  expect_damage("loss_0.txt:1: ", "\"0,30000000000000004\" is not a number");
}

TEST_F(ReadRun, NamesTheLineInAFileOfOneValue) {
  finish();
  replace(folder_.spec(), "0.001", "");
  expect_damage("spec.json:4: ", "not JSON");
  SetUp();
  write_text(folder_.environment(), "[1]");
  expect_damage("env.json:1: ", "not a JSON object");
  write_text(folder_.environment(), "{}");
  replace(folder_.result(), "\"workers\": 2", "\"workers\": null");
  expect_damage("result.json:1: ", "type must be number");
  write_text(folder_.result(), "");
  expect_damage("result.json:1: ", "not JSON");
  std::filesystem::remove(folder_.result());
  EXPECT_THROW(read_run(folder_.path), DataError) << "done, without a result";
  std::filesystem::remove(folder_.done());
  EXPECT_FALSE(read_run(folder_.path).result.has_value()) << "the foil: not done, no result";
}

TEST_F(ReadRun, TakesRanksByTheirNumber) {
  write_text(folder_.losses(10), "10\n");
  write_text(folder_.losses(2), "2\n");
  for (const char* stray : {"loss_x.txt", "loss_-1.txt", "loss_07.txt", "loss_.txt", "loss_99999999999.txt"})
    write_text(folder_.path / stray, "no loss\n");
  const record::Run run = read_run(folder_.path);
  ASSERT_EQ(run.losses.size(), 11u);
  EXPECT_EQ(run.losses[10], std::vector<double>{10});
  EXPECT_EQ(run.losses[2], std::vector<double>{2});
  EXPECT_TRUE(run.losses[0].empty()) << "on another machine";
}

TEST_F(ReadRun, RefusesAFolderWithoutARun) {
  const test::TempDir empty;
  for (const auto& path : {empty.path(), empty / "nowhere"}) {
    try {
      read_run(path);
      ADD_FAILURE() << path;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(path.string() + " is not a run's folder"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace syncopate::record
