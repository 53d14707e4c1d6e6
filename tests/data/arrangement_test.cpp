#include "syncopate/data/arrangement.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "syncopate/base/rng.h"
#include "syncopate/data/loader.h"
#include "syncopate/data/sampler.h"
#include "syncopate/data/subset.h"

namespace syncopate::data {
namespace {

using Ids = std::vector<int64_t>;

/// Lengths as texts have them: many short ones, some long.
int64_t some_length(int64_t id) {
  Rng rng(mix_key(11, id));
  const auto base = static_cast<int64_t>(3 + rng.below(20));
  return rng.below(6) == 0 ? 6 * base : base;
}

Ids some_costs(int64_t count) {
  Ids costs;
  for (int64_t i = 0; i < count; ++i) costs.push_back(cost_of(some_length(i)));
  return costs;
}

/// The sum of the costs of each worker or part.
Ids loads(const Ids& costs, const std::vector<int>& of, size_t parts) {
  Ids sums(parts, 0);
  for (size_t i = 0; i < costs.size(); ++i) sums[static_cast<size_t>(of[i])] += costs[i];
  return sums;
}

TEST(Arrangement, CostGrowsFasterThanLength) {
  EXPECT_EQ(cost_of(0), 1) << "images";
  EXPECT_EQ(cost_of(10), 10);
  EXPECT_GT(cost_of(512), 2 * cost_of(256));
}

TEST(Arrangement, DealsCostInTheProportionOfWeights) {
  const Ids costs = some_costs(64);
  const int64_t total = std::accumulate(costs.begin(), costs.end(), int64_t{0});
  const int64_t cheapest = *std::min_element(costs.begin(), costs.end());
  for (const Ids& weights : {Ids{1, 1}, Ids{2, 1}, Ids{43, 21}, Ids{1, 1, 1, 1}, Ids{5, 0, 3}}) {
    const int64_t together = std::accumulate(weights.begin(), weights.end(), int64_t{0});
    const Ids found = loads(costs, deal(costs, weights), weights.size());
    for (size_t w = 0; w < weights.size(); ++w) {
      EXPECT_NEAR(static_cast<double>(found[w]),
                  static_cast<double>(total * weights[w]) / static_cast<double>(together),
                  3.0 * static_cast<double>(cheapest));
    }
  }
  std::vector<int> halves(64, 0);  // the foil: equal counts, in order
  std::fill(halves.begin() + 32, halves.end(), 1);
  const Ids foil = loads(costs, halves, 2);
  EXPECT_GT(std::abs(foil[0] - foil[1]), 10 * cheapest);
}

TEST(Arrangement, NobodyGoesWithoutWhereThereAreEnough) {
  const Ids costs{90, 50, 50, 2, 1};
  for (const Ids& weights : {Ids{1000, 1, 1}, Ids{1, 1, 1000}, Ids{1, 1, 1, 1, 1}}) {
    std::map<int, int> count;
    for (const int worker : deal(costs, weights)) ++count[worker];
    EXPECT_EQ(count.size(), weights.size());
  }
  const std::vector<int> few = deal(Ids{3, 4}, Ids{1, 1, 1});
  EXPECT_NE(few[0], few[1]);
  EXPECT_EQ(deal(Ids{7, 8, 9}, Ids{0, 1}), (std::vector<int>{1, 1, 1}));
  EXPECT_TRUE(deal({}, Ids{1, 1}).empty());
}

TEST(Arrangement, CutsSortedExamplesIntoPartsOfLikeCost) {
  const Ids costs = some_costs(48);
  for (const int parts : {1, 2, 3, 5}) {
    const std::vector<int> part = cut_by_cost(costs, parts);
    const Ids found = loads(costs, part, static_cast<size_t>(parts));
    const int64_t dearest = *std::max_element(costs.begin(), costs.end());
    for (const int64_t load : found) EXPECT_NEAR(static_cast<double>(load), found[0], dearest);
    for (size_t a = 0; a < costs.size(); ++a) {
      for (size_t b = 0; b < costs.size(); ++b) {
        EXPECT_TRUE(part[a] >= part[b] || costs[a] <= costs[b]);
      }
    }
  }
  EXPECT_EQ(cut_by_cost(Ids{1, 1, 100}, 3), (std::vector<int>{0, 1, 2})) << "none is empty";
  EXPECT_EQ(cut_by_cost(Ids{100, 1, 1}, 3), (std::vector<int>{2, 0, 1}));
  EXPECT_EQ(cut_by_cost(Ids{5, 4}, 3), (std::vector<int>{1, 0})) << "there are too few";
}

Ids all_of(Sampler& sampler, int64_t step, int workers, int accumulate, const Ids& weights = {}) {
  Ids all;
  for (int rank = 0; rank < workers; ++rank) {
    for (const Ids& micro : sampler.micro_batches(step, workers, rank, accumulate, weights))
      all.insert(all.end(), micro.begin(), micro.end());
  }
  return all;
}

TEST(Arrangement, StepsHoldTheSameExamplesAsInOrder) {
  const auto cost = [](int64_t id) { return cost_of(some_length(id)); };
  Sampler plain(103, 16, 7, true), within(103, 16, 7, true), across(103, 16, 7, true);
  within.arrange(Arrange::kWithinWorkers, cost);
  across.arrange(Arrange::kAcrossWorkers, cost);
  bool moved = false, moved_within = false;
  for (int64_t step = 0; step < 14; ++step) {
    Ids whole = plain.batch(step);
    std::sort(whole.begin(), whole.end());
    for (const int workers : {1, 2, 3, 4}) {
      for (const int accumulate : {1, 2, 5}) {
        Ids dealt = all_of(across, step, workers, accumulate);
        EXPECT_EQ(dealt, all_of(across, step, workers, accumulate)) << "it repeats";
        moved = moved || (workers > 1 && dealt != plain.batch(step));
        std::sort(dealt.begin(), dealt.end());
        EXPECT_EQ(dealt, whole);
        for (int rank = 0; rank < workers; ++rank) {
          Ids mine, kept;
          for (const Ids& micro : plain.micro_batches(step, workers, rank, accumulate))
            mine.insert(mine.end(), micro.begin(), micro.end());
          for (const Ids& micro : within.micro_batches(step, workers, rank, accumulate))
            kept.insert(kept.end(), micro.begin(), micro.end());
          moved_within = moved_within || mine != kept;
          std::sort(mine.begin(), mine.end());
          std::sort(kept.begin(), kept.end());
          EXPECT_EQ(mine, kept) << "each worker keeps its own";
        }
      }
    }
    EXPECT_EQ(all_of(across, step, 1, 1), plain.batch(step)) << "one batch is as it was";
  }
  EXPECT_TRUE(moved && moved_within);
  Sampler other(103, 16, 8, true);  // the foil: other batches
  Ids foil = other.batch(0), whole = plain.batch(0);
  std::sort(foil.begin(), foil.end());
  std::sort(whole.begin(), whole.end());
  EXPECT_NE(foil, whole);
}

TEST(Arrangement, ExamplesThatCostTheSameStayInOrder) {
  Sampler plain(50, 12, 3, true), arranged(50, 12, 3, true);
  arranged.arrange(Arrange::kAcrossWorkers, [](int64_t) { return int64_t{1}; });
  for (int64_t step = 0; step < 5; ++step) {
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(arranged.micro_batches(step, 3, rank, 2), plain.micro_batches(step, 3, rank, 2));
      const Ids weights{2, 1, 3};
      EXPECT_EQ(arranged.micro_batches(step, 3, rank, 2, weights),
                plain.micro_batches(step, 3, rank, 2, weights));
    }
  }
}

class Lengths : public Dataset {
 public:
  int64_t size() const override { return 200; }
  int64_t length(int64_t id) const override { return some_length(id); }
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t) const override {
    tensor::Batch batch;
    batch.ids.assign(ids.begin(), ids.end());
    return batch;
  }
};

TEST(Arrangement, LoaderTellsTheLoadThatSharesAreOf) {
  const auto load = [](Arrange arrange, int rank) {
    Loader loader(std::make_shared<Subset>(std::make_shared<Lengths>(), epoch_order(150, 1, 0, true)),
                  {.global_batch = 50, .workers = 2, .rank = rank, .arrange = arrange});
    loader.set_shares({34, 16});
    return static_cast<double>(loader.next().load);
  };
  const auto ratio = [&](Arrange arrange) { return load(arrange, 0) / load(arrange, 1); };
  EXPECT_NEAR(ratio(Arrange::kAcrossWorkers), 34.0 / 16, 0.05);
  EXPECT_GT(load(Arrange::kAcrossWorkers, 1), 50) << "tokens";
  EXPECT_EQ(load(Arrange::kInOrder, 0), 34) << "examples";
  EXPECT_EQ(load(Arrange::kWithinWorkers, 1), 16);
}

}  // namespace
}  // namespace syncopate::data
