#include "syncopate/train/balance.h"

#include <gtest/gtest.h>

#include <numeric>

#include "syncopate/base/rng.h"
#include "syncopate/data/arrangement.h"
#include "syncopate/data/sampler.h"
#include "tests/contract/ranks.h"

namespace syncopate::train {
namespace {

using Numbers = std::vector<int64_t>;

TEST(Balance, SharesMatchSpeedsAndEveryWorkerHasAnExample) {
  EXPECT_EQ(shares_by_speed(Numbers{100, 100}, 64), (Numbers{32, 32}));
  EXPECT_EQ(shares_by_speed(Numbers{200, 100}, 64), (Numbers{43, 21}));
  EXPECT_EQ(shares_by_speed(Numbers{200, 100}, 63), (Numbers{42, 21}));
  EXPECT_EQ(shares_by_speed(Numbers{1, 1000000, 1}, 4), (Numbers{1, 2, 1}));
  EXPECT_EQ(shares_by_speed(Numbers{5, 1000000, 1}, 3), (Numbers{1, 1, 1}));
  EXPECT_EQ(shares_by_speed(Numbers{1000000000000, 1}, 1000000), (Numbers{999999, 1}));
  for (int64_t total = 7; total < 200; ++total) {
    const Numbers shares = shares_by_speed(Numbers{13, 1, 999, 250, 40, 41, 2}, total);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), int64_t{0}), total);
    for (const int64_t share : shares) EXPECT_GE(share, 1);
  }
}

/// The shares after every look, where step `s` costs rank `r` cost(r, s, examples) seconds.
template <typename Cost>
std::vector<Numbers> shares_over(int steps, Numbers::value_type batch, int ranks, Cost cost) {
  std::vector<std::vector<Numbers>> seen(static_cast<size_t>(ranks));
  test::run_ranks(ranks, [&](comm::Group& group) {
    const int rank = group.rank();
    Balance balance(group, batch, {.first = 4, .every = 8});
    for (int step = 1; step <= steps; ++step) {
      const int64_t mine = balance.shares()[static_cast<size_t>(rank)];
      balance.measure(mine, cost(rank, step, mine));
      balance.adjust(step);
      if (step == 4 || step % 8 == 0) seen[static_cast<size_t>(rank)].push_back(balance.shares());
    }
  });
  for (const auto& other : seen) EXPECT_EQ(other, seen[0]) << "ranks disagree";
  return seen[0];
}

TEST(Balance, IgnoresNoiseAndFollowsRealDifferences) {
  const auto noisy = [](int rank, int step, int64_t examples) {
    const double noise =
        0.03 * (((step * 7 + rank * 5) % 11) / 5.0 - 1) + (step % 8 == 5 ? 3 : 0);  // and jolts
    return 0.01 * static_cast<double>(examples) * (1 + noise);
  };
  for (const Numbers& shares : shares_over(64, 64, 2, noisy)) EXPECT_EQ(shares, (Numbers{32, 32}));
  const auto uneven = [&](int rank, int step, int64_t examples) {
    return (rank == 1 ? 2 : 1) * noisy(rank, step, examples);
  };
  const auto seen = shares_over(64, 63, 2, uneven);
  for (const Numbers& shares : seen) EXPECT_NEAR(static_cast<double>(shares[0]), 42, 2);
  for (size_t i = 2; i < seen.size(); ++i) EXPECT_EQ(seen[i], seen[1]) << "it swings";
}

TEST(Balance, FollowsAWorkerThatSlowsDownAndRecovers) {
  const auto cost = [](int rank, int step, int64_t examples) {
    const bool slow = rank == 0 && step > 16 && step <= 48;
    return (slow ? 3.0 : 1.0) * static_cast<double>(examples);
  };
  const auto seen = shares_over(80, 64, 2, cost);  // looks after steps 4, 8, 16, 24, ...
  EXPECT_EQ(seen[2], (Numbers{32, 32}));
  EXPECT_EQ(seen[3], (Numbers{16, 48}));
  EXPECT_EQ(seen[6], (Numbers{16, 48}));
  EXPECT_EQ(seen.back(), (Numbers{32, 32}));
}

TEST(Balance, AccountsForFixedCosts) {
  // Half of an equal step is the update, and rank 1 is twice as slow in all it does.
  const auto cost = [](int rank, int, int64_t examples) {
    return (rank == 1 ? 2.0 : 1.0) * (32 + static_cast<double>(examples));
  };
  const Numbers shares = shares_over(80, 64, 2, cost).back();
  const double first = cost(0, 0, shares[0]), second = cost(1, 0, shares[1]);
  EXPECT_LT(std::max(first, second) / std::min(first, second), 1.08);
}

/// How much longer than the faster worker the slower one takes, as a mean over the last steps, where texts
/// cost what their lengths say and rank 1 is twice as slow.
double unevenness(bool by_cost) {
  double total = 0;
  test::run_ranks(2, [&](comm::Group& group) {
    Balance balance(group, 64, {.first = 4, .every = 8});
    for (int step = 1; step <= 64; ++step) {
      Rng rng(static_cast<uint64_t>(step));
      Numbers costs;
      for (int i = 0; i < 64; ++i) costs.push_back(data::cost_of(3 + int64_t(rng.below(40) * rng.below(5))));
      const std::vector<int> worker_of = data::deal(costs, balance.shares());
      const data::Range in_order = data::share(64, balance.shares(), 0);
      double seconds[2] = {};
      int64_t loads[2] = {};
      for (size_t i = 0; i < costs.size(); ++i) {
        const int worker = by_cost ? worker_of[i] : static_cast<int64_t>(i) >= in_order.end;
        seconds[worker] += (worker == 1 ? 2e-3 : 1e-3) * static_cast<double>(costs[i]);
        loads[worker] += by_cost ? costs[i] : 1;
      }
      balance.measure(loads[group.rank()], seconds[group.rank()]);
      balance.adjust(step);
      if (step > 32 && group.rank() == 0)
        total += std::max(seconds[0], seconds[1]) / std::min(seconds[0], seconds[1]) - 1;
    }
    if (by_cost) {
      EXPECT_NEAR(static_cast<double>(balance.shares()[0]), 42.7, 1);
    }
  });
  return total / 32;
}

TEST(Balance, TextsAreBalancedByTheirTokens) {
  EXPECT_LT(unevenness(true), 0.05);
  EXPECT_GT(unevenness(false), 0.15) << "the foil: by examples, in order";
}

TEST(Balance, MissingMeasurementKeepsTheShares) {
  const auto seen = shares_over(8, 64, 2, [](int rank, int step, int64_t) { return rank + step; });
  EXPECT_NE(seen[0], (Numbers{32, 32}));
  test::run_ranks(2, [](comm::Group& group) {
    Balance balance(group, 64, {.first = 4, .every = 8});
    for (int step = 1; step <= 4; ++step) balance.measure(group.rank() == 0 ? 32 : 0, 1);
    EXPECT_FALSE(balance.adjust(4));
    EXPECT_EQ(balance.shares(), (Numbers{32, 32}));
  });
}

}  // namespace
}  // namespace syncopate::train
