#include "syncopate/nn/layers/noise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "syncopate/base/rng.h"

namespace syncopate::nn {
namespace {

constexpr int64_t kRows = 1500, kColumns = 700;

at::Tensor dropped(uint64_t key, double rate) {
  return noise_factors(make_noise(key, rate), kRows, kColumns, at::kFloat).eq(0).to(at::kDouble);
}

/// How many standard deviations the share of pairs that are both dropped is away from rate^2.
double pair_deviation(const at::Tensor& a, const at::Tensor& b, double rate) {
  const double expected = rate * rate, n = static_cast<double>(a.numel());
  return std::abs((a * b).mean().item<double>() - expected) / std::sqrt(expected * (1 - expected) / n);
}

/// `x` without its first or last elements along a dimension: pairs `lag` apart.
std::pair<at::Tensor, at::Tensor> apart(const at::Tensor& x, int64_t dim, int64_t lag) {
  const int64_t n = x.size(dim) - lag;
  return {x.narrow(dim, 0, n), x.narrow(dim, lag, n)};
}

TEST(Noise, DropsTheRequestedShareAndKeepsTheMean) {
  for (const double rate : {0.01, 0.1, 0.5, 0.9}) {
    const at::Tensor factors = noise_factors(make_noise(7, rate), kRows, kColumns, at::kDouble);
    const double share = factors.eq(0).to(at::kDouble).mean().item<double>();
    const double sigma = std::sqrt(rate * (1 - rate) / (kRows * kColumns));
    EXPECT_LT(std::abs(share - rate), 4.5 * sigma) << rate;
    EXPECT_NEAR(factors.max().item<double>(), 1 / (1 - rate), 1e-5);
    EXPECT_NEAR(factors.mean().item<double>(), 1, 4.5 * sigma / (1 - rate));
  }
}

TEST(Noise, DropsAreEvenOverRowsAndColumns) {
  const double rate = 0.1;
  const at::Tensor drops = dropped(11, rate);
  const double row_sigma = std::sqrt(rate * (1 - rate) / kColumns),
               column_sigma = std::sqrt(rate * (1 - rate) / kRows);
  EXPECT_LT(((drops.mean(1) - rate).abs().max() / row_sigma).item<double>(), 5.5);
  EXPECT_LT(((drops.mean(0) - rate).abs().max() / column_sigma).item<double>(), 5.5);
}

TEST(Noise, NeighboursAreIndependent) {
  for (const double rate : {0.1, 0.5}) {
    const at::Tensor drops = dropped(mix_key(3, 1), rate);
    for (const int64_t lag : {1, 2, 3, 4, 8, 16, 64, 128, 256}) {
      const auto [left, right] = apart(drops, 1, lag);
      EXPECT_LT(pair_deviation(left, right, rate), 5) << "columns " << lag;
      const auto [upper, lower] = apart(drops, 0, lag);
      EXPECT_LT(pair_deviation(upper, lower, rate), 5) << "rows " << lag;
    }
    EXPECT_LT(pair_deviation(drops, dropped(mix_key(3, 2), rate), rate), 5) << "sites";
    EXPECT_LT(pair_deviation(drops, dropped(mix_key(4, 1), rate), rate), 5) << "steps";
  }
}

TEST(Noise, IndependenceTestDetectsDependence) {
  const at::Tensor drops = dropped(5, 0.1);
  EXPECT_GT(pair_deviation(drops, drops, 0.1), 100);
  const auto [left, right] = apart(at::cat({drops, drops}, 1), 1, kColumns);
  EXPECT_GT(pair_deviation(left, right, 0.1), 100);
}

NoiseRows rows(std::vector<uint64_t> numbers) {
  return std::make_shared<const std::vector<uint64_t>>(std::move(numbers));
}

TEST(Noise, RowsSayWhichRowsOfTheNoiseTheseAre) {
  Noise noise = make_noise(9, 0.3);
  const at::Tensor all = noise_factors(noise, 40, 50, at::kFloat);
  noise.rows = rows({0, 8, 16, 24, 32});
  EXPECT_TRUE(at::equal(noise_factors(noise, 5, 50, at::kFloat), all.slice(0, 0, 40, 8)));
  noise.rows = rows({1, 8, 16, 24, 32});
  EXPECT_FALSE(at::equal(noise_factors(noise, 5, 50, at::kFloat), all.slice(0, 0, 40, 8)));
}

TEST(Noise, RowsFollowTheExampleAndThePosition) {
  const tensor::Batch batch{.fields = {}, .ids = {7, 3}, .real_tokens = 0};
  const tensor::Batch turned{.fields = {}, .ids = {3, 9, 7}, .real_tokens = 0};
  const auto some = rows_of(batch, at::zeros({2, 4})), others = rows_of(turned, at::zeros({3, 6}));
  for (size_t position = 0; position < 4; ++position) {
    EXPECT_EQ((*some)[position], (*others)[12 + position]);
    EXPECT_EQ((*some)[4 + position], (*others)[position]);
    EXPECT_NE((*some)[position], (*some)[4 + position]);
  }
  EXPECT_EQ(*rows_of(turned.ids, 1), std::vector<uint64_t>({(*others)[0], (*others)[6], (*others)[12]}));
  EXPECT_EQ(*chosen_rows(some, at::tensor({5, 2}, at::kLong)),
            std::vector<uint64_t>({(*some)[5], (*some)[2]}));
}

TEST(Noise, EveryHeadHasItsOwn) {
  const Noise noise = make_noise(9, 0.3);
  const at::Tensor probs = apply_noise_by_head(at::ones({2, 3, 100, 90}), noise);
  const at::Tensor first_head = apply_noise(at::ones({2, 100, 90}), noise);
  EXPECT_TRUE(at::equal(probs.select(1, 0), first_head));
  const auto drops = [&](int64_t head) { return probs.select(1, head).eq(0).to(at::kDouble); };
  for (const int64_t head : {1, 2}) EXPECT_LT(pair_deviation(drops(0), drops(head), 0.3), 5) << head;
}

TEST(Noise, ZeroDropsNothing) {
  EXPECT_FALSE(make_noise(1, 0).active());
  const at::Tensor x = at::ones({2, 3});
  EXPECT_TRUE(apply_noise(x, make_noise(1, 0)).is_same(x));
}

}  // namespace
}  // namespace syncopate::nn
