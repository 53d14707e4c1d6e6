#include "syncopate/lab/tuning.h"

#include <gtest/gtest.h>

namespace syncopate::lab {
namespace {

Tuning tuning_of(const std::vector<std::pair<double, std::vector<std::optional<double>>>>& scores) {
  Tuning tuning{.arm = 0, .setting = "optim.lr", .measure = "accuracy"};
  for (const auto& [value, found] : scores) {
    Trial& trial = tuning.at(value);
    trial.scores = found;
    trial.losses.assign(found.size(), 1);
  }
  tuning.choose();
  return tuning;
}

TEST(Tuning, TheBestMeanOverSeedsIsChosen) {
  const Tuning tuning = tuning_of({{0.1, {0.5, 0.5}}, {0.2, {0.9, 0.3}}, {0.4, {0.7, 0.2}}});
  EXPECT_EQ(tuning.best, 0.2) << "0.6 on average";
  EXPECT_EQ(tuning.edge, "");
  Tuning lower = tuning;
  lower.measure = "perplexity";
  lower.choose();
  EXPECT_EQ(lower.best, 0.4) << "of which less is better";
  EXPECT_EQ(lower.edge, "high");
}

TEST(Tuning, ARateThatDivergedWithOneSeedIsNotChosen) {
  EXPECT_EQ(tuning_of({{0.1, {0.5, 0.5}}, {0.2, {0.99, std::nullopt}}}).best, 0.1);
  EXPECT_EQ(tuning_of({{0.1, {std::nullopt}}, {0.2, {std::nullopt}}}).best, std::nullopt);
}

TEST(Tuning, EqualScoresAreToldApartByLoss) {
  Tuning tuning = tuning_of({{0.1, {0.5}}, {0.2, {0.5}}, {0.4, {0.5}}});
  EXPECT_EQ(tuning.best, 0.1);
  tuning.at(0.2).losses = {0.5};
  tuning.choose();
  EXPECT_EQ(tuning.best, 0.2);
}

TEST(Tuning, FinerValuesLieBetweenTheBestAndItsNeighbours) {
  EXPECT_EQ(finer_values(tuning_of({{1e-4, {0.1}}, {1e-3, {0.9}}, {4e-3, {0.2}}})),
            (std::vector<double>{3.16e-4, 2e-3}));
  const Tuning edge = tuning_of({{1e-4, {0.9}}, {1e-3, {0.1}}});
  EXPECT_EQ(edge.edge, "low");
  EXPECT_EQ(finer_values(edge), (std::vector<double>{3.16e-4})) << "never beyond the list";
  EXPECT_TRUE(finer_values(tuning_of({{1e-4, {0.9}}})).empty());
}

TEST(Tuning, RunsScoreTheValidationSplitAndOneTestExample) {
  Experiment::Arm arm;
  arm.spec.train.epochs = 4;
  const Experiment::Tune tune{.epochs = 1};
  const spec::RunSpec spec = tuning_spec(tune, arm, 0.25, 9);
  EXPECT_EQ(spec.optim.lr, 0.25);
  EXPECT_EQ(spec.train.seed, 9);
  EXPECT_EQ(spec.train.epochs, 1);
  EXPECT_EQ(spec.validation().share, 0.1);
  EXPECT_EQ(spec.task.test_limit, 1);
  arm.spec.task.validation = "0.2";
  EXPECT_EQ(tuning_spec(tune, arm, 0.25, 9).validation().share, 0.2) << "the arm's own";
}

}  // namespace
}  // namespace syncopate::lab
