#include "syncopate/run/score.h"

#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::run {
namespace {

std::string complaint_about(const spec::ScoreSpec& spec) {
  return test::sentence<Error>([&] { predict(spec, [](const std::string&) {}); });
}

TEST(Predict, RefusesPairsWithoutPromptsAndPromptsBesideData) {
  spec::ScoreSpec spec;
  spec.task = "rte";
  spec.pairs = {"a second text"};
  EXPECT_NE(complaint_about(spec).find("--prompt-pair goes with --prompt"), std::string::npos)
      << complaint_about(spec);
  spec.prompts = {"a text"};
  spec.data = "dev.tsv";
  EXPECT_NE(complaint_about(spec).find("exclude each other"), std::string::npos) << complaint_about(spec);
  spec.data.clear();
  spec.model = "no-such-folder";
  EXPECT_NE(complaint_about(spec).find("no model folder"), std::string::npos) << complaint_about(spec);
}

TEST(Predict, SaysWhenARunHasNotFinished) {
  const test::TempDir folder;
  test::write_text(folder / "spec.json", "{}");
  spec::ScoreSpec spec;
  spec.task = "rte";
  spec.prompts = {"a text"};
  spec.pairs = {"another"};
  spec.model = folder.path().string();
  EXPECT_NE(
      complaint_about(spec).find("has not finished and has no model yet; continue it with train --resume"),
      std::string::npos)
      << complaint_about(spec);
}

}  // namespace
}  // namespace syncopate::run
