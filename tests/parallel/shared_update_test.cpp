#include "syncopate/parallel/shared_update.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "syncopate/optim/clip.h"
#include "syncopate/parallel/make.h"
#include "tests/contract/ranks.h"
#include "tests/parallel/small_replica.h"

namespace syncopate::parallel {
namespace {

using test::kPatience;
using test::run_ranks;
using test::run_shm_ranks;
using test::SmallReplica;

constexpr int64_t kWords = 6000;

/// Large enough that several ranks have a part.
std::unique_ptr<nn::Model> make_model(uint64_t seed) {
  nn::BertConfig config = SmallReplica::config();
  config.vocab_size = kWords;
  config.hidden = 32;
  config.ffn = 64;
  return nn::make_bert(config, seed);
}

constexpr int64_t kSteps = 5;

/// Few, then a few others, then most, then twice few again.
at::Tensor rows_of(int64_t step, int rank) {
  const int64_t stride = step == 2 ? 1 : 150;
  return at::arange(7 * rank + step, kWords, stride, at::kLong);
}

/// The gradient of the other rows is zero.
void keep_rows(tensor::FlatParams& params, const tensor::RowUse& use) {
  const at::Tensor grad = params.grad_of(*params.find(use.table)).view(use.table.sizes());
  const at::Tensor kept = grad.index_select(0, use.rows);
  grad.zero_();
  grad.index_copy_(0, use.rows, kept);
}

struct Outcome {
  at::Tensor values;
  std::vector<at::Tensor> state;
  double norm = 0;
  int64_t skipped = 0;
  bool shared = false;
  std::vector<const void*> memory;  ///< where each rank has its parameters
};

struct Asked {
  int ranks = 2;
  bool share = true;
  optim::OptimizerOptions optimizer{};
  double clip = 1;
  std::string strategy = "all-reduce";
  double rate = 1e-2;
  bool overflow = false;         ///< a rank's second gradient, with a loss scale
  std::string over = "threads";  ///< or "shm", as ranks in several processes share memory, or "gloo"
};

/// What the last rank has after all steps.
Outcome train(const Asked& asked) {
  Outcome outcome;
  std::mutex mutex;
  const auto body = [&](comm::Group& group) {
    const MadeStrategy made = make_strategy({.name = asked.strategy, .share = asked.share}, group);
    SmallReplica mine(make_model(static_cast<uint64_t>(group.rank())), asked.optimizer);
    mine.replica.clip = asked.clip;
    optim::LossScale scale(8);
    if (asked.overflow) mine.replica.loss_scale = &scale;
    made.strategy->start(mine.replica);
    for (int64_t step = 0; step < kSteps; ++step) {
      const std::vector<tensor::RowUse> rows{{mine.model->row_tables().at(0), rows_of(step, group.rank())}};
      mine.context = {.step = step, .lr = asked.rate, .count = 2, .rows = rows};
      made.strategy->before_backward(mine.replica, mine.context, true);
      mine.set_gradient(10 * step + group.rank());
      keep_rows(mine.params, rows.front());
      if (asked.overflow && step == 1 && group.rank() == 0)
        mine.params.grads[0] = std::numeric_limits<float>::infinity();
      mine.step(*made.strategy);
    }
    const std::lock_guard lock(mutex);
    outcome.memory.push_back(mine.params.values.data_ptr());
    if (group.rank() != asked.ranks - 1) return;
    outcome.values = mine.params.values.clone();
    for (const auto& named : mine.optimizer->state()) outcome.state.push_back(named.tensor.clone());
    outcome.norm = mine.last.gradient_norm;
    outcome.skipped = scale.skipped();
    outcome.shared = mine.replica.shared != nullptr;
  };
  if (asked.over == "shm") {
    run_shm_ranks(asked.ranks, body, kPatience);
  } else if (asked.over == "gloo") {
    test::run_gloo_ranks(asked.ranks, body, kPatience);
  } else {
    run_ranks(asked.ranks, body, kPatience);
  }
  return outcome;
}

void expect_same(const Outcome& a, const Outcome& b) {
  EXPECT_TRUE(at::equal(a.values, b.values));
  ASSERT_EQ(a.state.size(), b.state.size());
  for (size_t i = 0; i < a.state.size(); ++i) EXPECT_TRUE(at::equal(a.state[i], b.state[i])) << i;
  EXPECT_EQ(a.norm, b.norm);
}

TEST(SharedUpdate, MakesTheUpdateOfRanksThatKeepTheirOwnBitForBit) {
  for (const std::string optimizer : {"adamw", "sgd"}) {
    for (const double clip : {0.0, 1.0}) {
      Asked asked{.ranks = 3,
                  .share = false,
                  .optimizer = {.kind = optimizer, .weight_decay = 0.1, .momentum = 0.9},
                  .clip = clip};
      const Outcome apart = train(asked);
      EXPECT_FALSE(apart.shared);
      asked.share = true;
      for (const std::string strategy : {"all-reduce", "ddp"}) {
        for (const std::string over : {"threads", "shm"}) {
          SCOPED_TRACE(optimizer + " " + strategy + " over " + over);
          asked.strategy = strategy;
          asked.over = over;
          const Outcome together = train(asked);
          EXPECT_TRUE(together.shared);
          expect_same(apart, together);
        }
      }
      asked.rate *= 1.1;
      EXPECT_FALSE(at::equal(apart.values, train(asked).values));
    }
  }
}

TEST(SharedUpdate, ThereIsOneSetOfParameters) {
  const auto distinct = [](std::vector<const void*> memory) {
    std::sort(memory.begin(), memory.end());
    return std::unique(memory.begin(), memory.end()) - memory.begin();
  };
  EXPECT_EQ(distinct(train({.ranks = 3}).memory), 1);
  EXPECT_EQ(distinct(train({.ranks = 3, .share = false}).memory), 3);
}

TEST(SharedUpdate, OptimizersThatLookAtWholeTensorsKeepTheirOwn) {
  for (const std::string optimizer : {"lamb", "lars"}) {
    Asked asked{.optimizer = {.kind = optimizer, .momentum = 0.9}};
    const Outcome outcome = train(asked);
    EXPECT_FALSE(outcome.shared) << optimizer;
    asked.share = false;
    expect_same(train(asked), outcome);
  }
}

TEST(SharedUpdate, RanksWithoutCommonMemoryKeepTheirOwn) {
  const Outcome outcome = train({.over = "gloo"});
  EXPECT_FALSE(outcome.shared);
  expect_same(train({}), outcome);
}

TEST(SharedUpdate, AGradientThatOverflowsIsSkippedByAll) {
  for (const std::string over : {"threads", "shm"}) {
    const Outcome together = train({.ranks = 3, .overflow = true, .over = over});
    EXPECT_TRUE(together.shared);
    EXPECT_EQ(together.skipped, 1);
    const Outcome apart = train({.ranks = 3, .share = false, .overflow = true, .over = over});
    expect_same(apart, together);
    EXPECT_FALSE(at::equal(train({.ranks = 3}).values, together.values));
  }
}

TEST(SharedUpdate, PartsCoverEverythingOnce) {
  for (const int64_t size : {int64_t{1}, optim::kNormBlock, 7 * optim::kNormBlock + 16}) {
    for (const int ranks : {2, 3, 16}) {
      int64_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Share part = share_of(size, rank, ranks, optim::kNormBlock);
        EXPECT_EQ(part.begin, end);
        EXPECT_GE(part.end, part.begin);
        EXPECT_LE(part.end - part.begin, (size / optim::kNormBlock / ranks + 2) * optim::kNormBlock);
        end = part.end;
      }
      EXPECT_EQ(end, size);
    }
  }
}

}  // namespace
}  // namespace syncopate::parallel
