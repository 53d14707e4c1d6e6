#include "syncopate/parallel/strategies/hogwild.h"

#include <gtest/gtest.h>

#include "tests/contract/ranks.h"
#include "tests/parallel/small_replica.h"

namespace syncopate::parallel {
namespace {

using test::run_ranks;
using test::SmallReplica;

TEST(Hogwild, ReplicasShareOneSetOfParameters) {
  run_ranks(3, [](comm::Group& group) {
    SmallReplica mine(static_cast<uint64_t>(group.rank()));
    Hogwild strategy(group, {});
    strategy.start(mine.replica);
    mine.params.check_views();
    group.barrier();
    if (group.rank() == 1) mine.params.values.fill_(7);
    group.barrier();
    EXPECT_TRUE(mine.params.values.eq(7).all().item<bool>());
    for (const auto& named : mine.model->parameters()) EXPECT_TRUE(named.tensor.eq(7).all().item<bool>());
    group.barrier();
  });
}

TEST(Hogwild, EveryTicketIsTakenOnceAndEveryUpdateApplied) {
  constexpr int64_t kTickets = 200;
  std::mutex mutex;
  std::vector<int64_t> taken;
  run_ranks(4, [&](comm::Group& group) {
    SmallReplica mine(0, {.kind = "sgd", .weight_decay = 0, .momentum = 0});
    mine.context.lr = 1;
    Hogwild strategy(group, {});
    strategy.start(mine.replica);
    mine.params.values.zero_();
    group.barrier();
    const auto element = [&](int64_t i) { return mine.params.value_of(mine.params.entries()[1])[i]; };
    for (const int64_t from : {0, 100}) {
      strategy.open(mine.replica, from, from + 100);
      while (const auto ticket = strategy.take(false)) {
        mine.params.grads.zero_();
        mine.params.grad_of(mine.params.entries()[1])[group.rank()] = -1;
        // One at a time: a dense update writes every element, and one that comes between may be lost.
        const std::lock_guard lock(mutex);
        mine.step(strategy);
        taken.push_back(*ticket);
      }
      EXPECT_EQ(strategy.close(mine.replica), 100);
      double sum = 0;
      for (int rank = 0; rank < 4; ++rank) sum += element(rank).item<double>();
      EXPECT_EQ(sum, static_cast<double>(from + 100));
      group.barrier();
    }
  });
  std::sort(taken.begin(), taken.end());
  ASSERT_EQ(taken.size(), static_cast<size_t>(kTickets));
  for (int64_t i = 0; i < kTickets; ++i) EXPECT_EQ(taken[static_cast<size_t>(i)], i);
}

TEST(Hogwild, OneWorkerMatchesTheOptimizerBitForBit) {
  for (const bool share_state : {false, true}) {
    SmallReplica plain(1), wild(1), foil(1);
    run_ranks(1, [&](comm::Group& group) {
      Hogwild strategy(group, {.share_state = share_state});
      strategy.start(wild.replica);
      strategy.open(wild.replica, 0, 10);
      while (const auto ticket = strategy.take(false)) {
        wild.set_gradient(*ticket);
        wild.step(strategy);
      }
      strategy.close(wild.replica);
    });
    for (int64_t i = 0; i < 10; ++i) {
      plain.set_gradient(i);
      plain.apply();
      foil.set_gradient(i + 1);
      foil.apply();
    }
    EXPECT_TRUE(at::equal(plain.params.values, wild.params.values));
    EXPECT_FALSE(at::equal(plain.params.values, foil.params.values));
    EXPECT_EQ(wild.optimizer->steps_done(), 10);
  }
}

TEST(Hogwild, UpdatesThroughTheHostAddUp) {
  // Where device memory cannot be shared: a copy is taken, and what an update changed is added.
  SmallReplica plain(1), alone(1);
  for (int64_t i = 0; i < 10; ++i) {
    plain.set_gradient(i);
    plain.apply();
  }
  run_ranks(1, [&](comm::Group& group) {
    Hogwild strategy(group, {.share_state = false, .through_host = true});
    strategy.start(alone.replica);
    strategy.open(alone.replica, 0, 10);
    while (const auto ticket = strategy.take(false)) {
      alone.set_gradient(*ticket);
      alone.step(strategy);
    }
    strategy.close(alone.replica);
    EXPECT_EQ(strategy.settle(alone.replica).model, "shared by all workers through host memory");
  });
  EXPECT_TRUE(at::allclose(plain.params.values, alone.params.values, 1e-5, 1e-6));
  run_ranks(3, [](comm::Group& group) {
    SmallReplica mine(0, {.kind = "sgd", .weight_decay = 0, .momentum = 0});
    mine.context.lr = 1;
    mine.params.values.zero_();
    Hogwild strategy(group, {.share_state = false, .through_host = true});
    strategy.start(mine.replica);
    strategy.open(mine.replica, 0, 3);
    ASSERT_TRUE(strategy.take(false));
    mine.params.grads.fill_(-1 - group.rank());
    for (int turn = 0; turn < 3; ++turn) {  // all have read the same; one writes at a time
      if (turn == group.rank()) mine.step(strategy);
      group.barrier();
    }
    EXPECT_EQ(strategy.close(mine.replica), 3);
    EXPECT_TRUE(mine.params.values.eq(6).all().item<bool>());
    group.barrier();
  });
}

TEST(Hogwild, SharedStateIsVisibleToAllAndOwnStateIsNot) {
  for (const bool share_state : {false, true}) {
    run_ranks(2, [&](comm::Group& group) {
      SmallReplica mine(1);
      Hogwild strategy(group, {.share_state = share_state});
      strategy.start(mine.replica);
      strategy.open(mine.replica, 0, 1);
      if (group.rank() == 0) {
        mine.set_gradient(3);
        ASSERT_TRUE(strategy.take(false));
        mine.step(strategy);
      }
      strategy.close(mine.replica);
      const double moments = mine.optimizer->state().front().tensor.abs().sum().item<double>();
      EXPECT_EQ(moments > 0, share_state || group.rank() == 0);
      EXPECT_EQ(mine.optimizer->steps_done(), share_state || group.rank() == 0 ? 1 : 0);
      group.barrier();
    });
  }
}

}  // namespace
}  // namespace syncopate::parallel
