#include "syncopate/lab/check.h"

#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace syncopate::lab {
namespace {

/// Leaves a log, and a folder without a run in it.
class Writer : public Runner {
 public:
  int started = 0;
  std::unique_ptr<RunInProgress> start(const Launch& launch) override {
    ++started;
    std::filesystem::create_directories(launch.folder);
    test::write_text(launch.log, "it began\n");
    return std::make_unique<Run>();
  }

 private:
  class Run : public RunInProgress {
   public:
    std::optional<Ending> look() override { return Ending{.exit_code = 3, .message = "no such data"}; }
    void stop() override {}
  };
};

TEST(Check, RemovesWhatACheckMadeAndNothingElse) {
  const test::TempDir folder;
  plan::AdviceRow row;
  row.spec.comm.workers = 2;
  row.spec.complete();
  row.predicted.ms = 100;
  Writer runner;
  std::filesystem::create_directories(folder / "ddp-2w");
  test::write_text(folder / "ddp-2w/model.safetensors", "weeks of work");
  check_row(row, {.folder = folder.path(), .runner = &runner});
  EXPECT_EQ(runner.started, 0);
  EXPECT_NE(row.failed.find("no check made it"), std::string::npos) << row.failed;
  EXPECT_TRUE(std::filesystem::exists(folder / "ddp-2w/model.safetensors"));

  test::write_text(folder / "ddp-2w.log", "of a check");
  check_row(row, {.folder = folder.path(), .runner = &runner});
  EXPECT_EQ(runner.started, 1);
  EXPECT_EQ(row.failed, "no such data");
  EXPECT_FALSE(std::filesystem::exists(folder / "ddp-2w/model.safetensors"));
}

}  // namespace
}  // namespace syncopate::lab
