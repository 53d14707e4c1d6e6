#include "syncopate/report/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace syncopate::report {
namespace {

// The table of Student's t that textbooks print (two-sided 90, 95 and 99 %).
TEST(Statistics, QuantilesAreThoseOfThePrintedTable) {
  const struct {
    double freedom, t95, t975, t995;
  } table[] = {{1, 6.314, 12.706, 63.657}, {2, 2.920, 4.303, 9.925},   {3, 2.353, 3.182, 5.841},
               {4, 2.132, 2.776, 4.604},   {5, 2.015, 2.571, 4.032},   {10, 1.812, 2.228, 3.169},
               {30, 1.697, 2.042, 2.750},  {120, 1.658, 1.980, 2.617}, {1e7, 1.645, 1.960, 2.576}};
  for (const auto& row : table) {
    EXPECT_NEAR(student_quantile(0.95, row.freedom), row.t95, 5e-4) << row.freedom;
    EXPECT_NEAR(student_quantile(0.975, row.freedom), row.t975, 5e-4) << row.freedom;
    EXPECT_NEAR(student_quantile(0.995, row.freedom), row.t995, 5e-4) << row.freedom;
    EXPECT_DOUBLE_EQ(student_quantile(0.025, row.freedom), -student_quantile(0.975, row.freedom));
  }
  // With one degree of freedom it is Cauchy's, with two algebraic: both are known exactly.
  EXPECT_NEAR(student_quantile(0.975, 1), std::tan(M_PI * 0.475), 1e-9);
  EXPECT_NEAR(student_quantile(0.975, 2), 2 * 0.475 * std::sqrt(2 / (4 * 0.975 * 0.025)), 1e-9);
  EXPECT_EQ(student_quantile(0.5, 3), 0);
  EXPECT_TRUE(std::isnan(student_quantile(1, 3)));
  EXPECT_TRUE(std::isnan(student_quantile(0.9, 0)));
}

TEST(Statistics, AnEstimateIsMeanSpreadAndInterval) {
  // Worked by hand: mean 5, squares 9+1+1+1+0+0+4+16 = 32, sd = sqrt(32 / 7), t(7) = 2.3646.
  const Estimate e = estimate({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(e.n, 8);
  EXPECT_DOUBLE_EQ(e.mean, 5);
  EXPECT_NEAR(e.sd, 2.13809, 1e-5);
  EXPECT_NEAR(e.half(), 2.36462 * 2.13809 / std::sqrt(8.0), 1e-4);
  EXPECT_NEAR(e.low, 5 - e.half(), 1e-12);
}

TEST(Statistics, WhatIsNotKnownIsLeftOutAndOneValueHasNoInterval) {
  const Estimate e = estimate({kUnknown, 3, INFINITY});
  EXPECT_EQ(e.n, 1);
  EXPECT_EQ(e.mean, 3);
  EXPECT_EQ(e.values.size(), 3u);
  EXPECT_TRUE(std::isnan(e.sd) && std::isnan(e.low) && std::isnan(e.high));
  EXPECT_FALSE(estimate({}).known());
  EXPECT_TRUE(std::isnan(estimate({}).mean));
}

// Gosset's own data (Student 1908, after Cushny and Peebles): hours of sleep gained by ten patients with two
// drugs. The paired differences are 1.58 ± 0.88 and decide; as two groups they would not.
TEST(Statistics, PairsDecideWhatGroupsCannot) {
  const std::vector<double> a{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
  const std::vector<double> b{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  std::vector<double> gained;
  for (size_t i = 0; i < a.size(); ++i) gained.push_back(b[i] - a[i]);
  const Difference d = paired_difference(gained, true);
  EXPECT_NEAR(d.mean, 1.58, 1e-9);
  EXPECT_NEAR(d.sd, 1.229995, 1e-6);
  EXPECT_NEAR(d.low, 0.70011, 1e-4);
  EXPECT_NEAR(d.high, 2.45989, 1e-4);
  EXPECT_TRUE(d.decided);
  EXPECT_EQ(d.better, true);
  EXPECT_EQ(paired_difference(gained, false).better, false);
  EXPECT_LT(estimate(b).low, estimate(a).high) << "the groups' own intervals overlap";
}

TEST(Statistics, AnIntervalWithZeroInItIsUndecided) {
  const Difference open = paired_difference({0.5, -0.4, 0.3}, true);
  EXPECT_FALSE(open.decided);
  EXPECT_EQ(open.better, std::nullopt);
  ASSERT_TRUE(open.seeds_needed);
  EXPECT_GT(*open.seeds_needed, 3);
  EXPECT_TRUE(paired_difference({0.5, 0.4, 0.45}, true).decided) << "foil";
  EXPECT_FALSE(paired_difference({0.5}, true).decided) << "one seed never decides";
  EXPECT_EQ(paired_difference({}, true).n, 0);
}

TEST(Statistics, SeedsThatAgreeToTheBitAreTheSame) {
  const Difference same = paired_difference({0, 0, 0}, true);
  EXPECT_TRUE(same.same);
  EXPECT_FALSE(same.decided);
  EXPECT_EQ(same.seeds_needed, std::nullopt);
  EXPECT_FALSE(paired_difference({0}, true).same);
  EXPECT_FALSE(paired_difference({1e-9, 0, 0}, true).same);
}

TEST(Statistics, SeedsNeededIsTheFirstNumberThatDecidesFourTimesInFive) {
  for (const double mean : {0.1, 0.5, 1.0, 3.0, -0.5}) {
    const auto n = seeds_needed(mean, 1);
    ASSERT_TRUE(n) << mean;
    const auto half = [](int64_t seeds) {
      return (student_quantile(0.975, static_cast<double>(seeds - 1)) + 0.8416) /
             std::sqrt(static_cast<double>(seeds));
    };
    EXPECT_LT(half(*n), std::abs(mean));
    if (*n > 3) {
      EXPECT_GE(half(*n - 1), std::abs(mean));
    }
  }
  EXPECT_EQ(seeds_needed(1, 1), 10) << "(2.262 + 0.842) / sqrt(10) = 0.98, (2.306 + 0.842) / 3 = 1.05";
  EXPECT_EQ(seeds_needed(1e-6, 1), std::nullopt) << "more than anybody would run";
  EXPECT_EQ(seeds_needed(0, 1), std::nullopt);
  EXPECT_EQ(seeds_needed(1, 0), 3) << "two are never counted on";
}

// Two seeds that move by the same few examples say nothing about a third.
TEST(Statistics, SeedsThatHappenToAgreeDecideNothing) {
  const std::vector<double> agree{0.8036 - 0.80, 0.8136 - 0.81};
  const Difference two = paired_difference(agree, true, 0.001);
  EXPECT_FALSE(two.decided);
  EXPECT_FALSE(paired_difference(agree, true).decided) << "whatever a score's step is";
  EXPECT_GE(two.sd, 0.001);
  EXPECT_GT(two.high, 0.01) << "12.7 * 0.001 / sqrt(2)";
  EXPECT_FALSE(paired_difference({0.1, 0.1}, true, 0.001).decided) << "nor a large one";
  EXPECT_FALSE(paired_difference({0.1, 0.103}, true, 0.001).decided) << "nor two that differ a little";
  EXPECT_TRUE(paired_difference({0.1, 0.103, 0.1}, true, 0.001).decided) << "foil: a third";
  EXPECT_TRUE(paired_difference({0.1, 0.1, 0.1}, true, 0.001).decided) << "foil: three seeds";
  EXPECT_FALSE(paired_difference({0.001, 0.001, 0.001}, true, 0.001).decided) << "one example each";
}

// Holm's procedure by hand: 0.01 * 4 = 0.04 and 0.013 * 3 = 0.039 stand, 0.03 * 2 = 0.06 does not, nor what
// follows.
TEST(Statistics, ClaimsStandTogetherByHolm) {
  EXPECT_EQ(stand_together({0.03, 0.01, 0.04, 0.013}), (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(stand_together({0.04}), (std::vector<bool>{true}));
  EXPECT_EQ(stand_together({0.04, 0.9}), (std::vector<bool>{false, false}));
  EXPECT_TRUE(stand_together({}).empty());
  // Gosset's data again: t = 4.0621 with 9 degrees of freedom, p = 0.00283.
  const Difference sleep = paired_difference({1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4}, true);
  EXPECT_NEAR(chance_of(sleep), 0.00283, 1e-5);
  EXPECT_EQ(chance_of(paired_difference({1}, true)), 1);
}

TEST(Statistics, MediansLeaveOutWhatIsNotKnown) {
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, kUnknown, 3, 2}), 2.5);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Statistics, TheFrontHoldsWhatNothingBeats) {
  const std::vector<bool> front =
      pareto_front({{1, 5}, {2, 4}, {2, 3}, {3, 4}, {1, 5}, {kUnknown, 9}, {0.5, 5}, {4, 1}});
  EXPECT_EQ(front, (std::vector<bool>{true, false, false, true, true, false, false, true}));
  EXPECT_TRUE(pareto_front({}).empty());
}

}  // namespace
}  // namespace syncopate::report
