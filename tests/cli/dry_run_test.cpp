#include "syncopate/cli/dry_run.h"

#include <gtest/gtest.h>

#include <limits>

#include "syncopate/base/text.h"
#include "syncopate/lab/sweep.h"
#include "tests/support/support.h"

namespace syncopate::cli {
namespace {

class DryRun : public testing::Test {
 protected:
  /// Of two tuning runs and a row that take ten seconds each, but for what `change` says.
  template <typename Change>
  std::string table(const std::string& tune, const Change& change) const {
    test::write_text(folder_ / "x.toml",
                     "[[row]]\nname=\"A\"\nstrategy=\"single\"\n[tune]\nlr=[0.1,0.2]\n" + tune);
    const lab::Experiment experiment = lab::read_experiment(folder_ / "x.toml");
    const lab::Plan plan = lab::survey(experiment, folder_ / "out", false);
    std::vector<lab::Estimate> estimates(plan.runs.size(), lab::Estimate{.seconds = 10});
    change(estimates);
    return dry_run_table(experiment, plan, estimates);
  }
  static void expect(const std::string& text, const std::string& part, bool there = true) {
    EXPECT_EQ(text.find(part) != std::string::npos, there) << part << "\n" << text;
  }
  static constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();
  test::TempDir folder_;
};

TEST_F(DryRun, FinerTuningRunsAreAddedToTheTime) {
  const auto nothing = [](auto&) {};
  const std::string text = table("", nothing);
  expect(text, "3 runs, 0 done; about " + duration_for_people(30));
  expect(text, "tuning adds up to 2 finer runs: up to " + duration_for_people(50));
  expect(table("refine=0\n", nothing), "finer", false);
}

TEST_F(DryRun, OneBadValueIsNotTheWholeArm) {
  const std::string text = table(
      "", [](auto& estimates) { estimates[1] = {.seconds = kNotKnown, .failure = std::string("it broke")}; });
  expect(text, "tuning A, lr 0.2, seed 0 cannot run: it broke");
  expect(text, "lr 0.1, seed 0 cannot run", false);
  expect(text, "time not known", false);
}

TEST_F(DryRun, WhatOnlyHasNoTimeCanRun) {
  const std::string text = table("", [](auto& estimates) { estimates[2].seconds = kNotKnown; });
  expect(text, "time not known: A\n");
  expect(text, "cannot run", false);
}

}  // namespace
}  // namespace syncopate::cli
