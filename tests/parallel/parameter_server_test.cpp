#include "syncopate/parallel/server/parameter_server.h"

#include <gtest/gtest.h>

#include <atomic>

#include "syncopate/comm/together/broadcast_text.h"
#include "syncopate/parallel/averagers/all_reduce.h"
#include "syncopate/parallel/server/shard_server.h"
#include "syncopate/parallel/strategies/every_step.h"
#include "tests/contract/ranks.h"
#include "tests/parallel/small_replica.h"

namespace syncopate::parallel {
namespace {

using test::run_ranks;
using test::SmallReplica;

using Work = std::function<void(comm::Group& world, comm::Group& workers)>;

/// `options.workers` ranks that work and `servers` that serve them.
void run_with_servers(const ShardServerOptions& options, int servers, const Work& work) {
  run_ranks(options.workers + servers, [&](comm::Group& world) {
    if (world.rank() >= options.workers) return serve(world, options);
    const auto workers = world.split(0, world.rank());
    work(world, *workers);
  });
}

class Optimizers : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Optimizers, testing::Values("adamw", "sgd", "lamb", "lars"));

TEST_P(Optimizers, OneWorkerMatchesSingleBitForBit) {
  optim::OptimizerOptions options;
  options.kind = GetParam();
  SmallReplica plain(1, options), foil(1, options);
  plain.replica.clip = 0.5;
  for (int64_t i = 0; i < 8; ++i) {
    plain.set_gradient(i);
    plain.apply();
    foil.set_gradient(i);
    foil.apply();
  }
  EXPECT_FALSE(at::equal(plain.params.values, foil.params.values)) << "clipping matters";
  for (const int servers : {1, 3}) {
    for (const int64_t staleness : {ShardServerOptions::kFree, int64_t{2}}) {
      SmallReplica served(1, options);
      served.replica.clip = 0.5;
      ShardServerOptions server{
          .workers = 1, .staleness = staleness, .optimizer = options, .before_update = {}};
      run_with_servers(server, servers, [&](comm::Group& world, comm::Group& workers) {
        ParameterServer strategy(world, workers, {.whole_tensors = optim::needs_whole_tensors(options.kind)});
        strategy.start(served.replica);
        strategy.open(served.replica, 0, 8);
        while (const auto ticket = strategy.take(false)) {
          served.set_gradient(*ticket);
          served.step(strategy);
        }
        EXPECT_EQ(strategy.close(served.replica), 8);
        strategy.leave();
      });
      EXPECT_TRUE(at::equal(plain.params.values, served.params.values)) << servers << " servers";
      EXPECT_EQ(plain.last.gradient_norm, served.last.gradient_norm);
    }
  }
}

TEST_P(Optimizers, LockstepMatchesAllReduceBitForBit) {
  optim::OptimizerOptions options;
  options.kind = GetParam();
  constexpr int kWorkers = 3;
  const auto train = [](SmallReplica& mine, Strategy& strategy, comm::Group& workers) {
    mine.replica.clip = 0.5;
    mine.context.count = 7;
    strategy.start(mine.replica);
    for (int64_t i = 0; i < 6; ++i) {
      mine.set_gradient(100 * i + workers.rank());
      mine.step(strategy);
    }
  };
  at::Tensor reference;
  run_ranks(kWorkers, [&](comm::Group& group) {
    SmallReplica mine(static_cast<uint64_t>(group.rank()), options);
    EveryStep strategy(group, std::make_unique<AllReduce>(group), {});
    train(mine, strategy, group);
    if (group.rank() == 0) reference = mine.params.values.clone();
  });
  ShardServerOptions server{
      .workers = kWorkers, .staleness = 0, .clip = 0.5, .optimizer = options, .before_update = {}};
  run_with_servers(server, 1, [&](comm::Group& world, comm::Group& workers) {
    SmallReplica mine(static_cast<uint64_t>(workers.rank()), options);
    LockstepServer strategy(world, workers, {.whole_tensors = optim::needs_whole_tensors(options.kind)});
    train(mine, strategy, workers);
    strategy.leave();
    EXPECT_TRUE(at::equal(reference, mine.params.values)) << "rank " << workers.rank();
  });
  // With several servers the norm is summed in another order; without clipping there is none.
  server.clip = 0;
  at::Tensor unclipped;
  for (const int servers : {1, 2}) {
    run_with_servers(server, servers, [&](comm::Group& world, comm::Group& workers) {
      SmallReplica mine(static_cast<uint64_t>(workers.rank()), options);
      LockstepServer strategy(world, workers, {.whole_tensors = optim::needs_whole_tensors(options.kind)});
      train(mine, strategy, workers);
      strategy.leave();
      if (workers.rank() > 0) return;
      if (servers == 1) unclipped = mine.params.values.clone();
      EXPECT_TRUE(at::equal(unclipped, mine.params.values));
    });
  }
  EXPECT_FALSE(at::equal(unclipped, reference)) << "clipping matters";
}

TEST(ParameterServer, FastWorkersDoNotWaitForASlowOne) {
  // The slow one keeps its first ticket until the other has done all the rest.
  constexpr int64_t kTickets = 40;
  std::atomic<int64_t> done{0};
  std::atomic<bool> held{false};
  ShardServerOptions server{.workers = 2, .optimizer = {}, .before_update = {}};
  run_with_servers(server, 1, [&](comm::Group& world, comm::Group& workers) {
    SmallReplica mine(1);
    ParameterServer strategy(world, workers, {});
    strategy.start(mine.replica);
    strategy.open(mine.replica, 0, kTickets);
    if (workers.rank() == 1) {
      ASSERT_TRUE(strategy.take(false));
      held = true;
      while (done < kTickets - 1) std::this_thread::yield();
      mine.set_gradient(1);
      mine.step(strategy);
    } else {
      while (!held) std::this_thread::yield();
      while (done < kTickets - 1) {
        const auto ticket = strategy.take(false);
        if (!ticket) break;
        mine.set_gradient(*ticket);
        mine.step(strategy);
        ++done;
      }
    }
    EXPECT_EQ(strategy.close(mine.replica), kTickets);
    const auto staleness = strategy.staleness();
    ASSERT_EQ(staleness.size(), 2u);
    EXPECT_EQ(staleness[0], std::vector<int64_t>{kTickets - 1}) << "nobody came between";
    std::vector<int64_t> slow(kTickets, 0);
    slow.back() = 1;
    EXPECT_EQ(staleness[1], slow) << "all others came between";
    strategy.leave();
  });
}

TEST(ParameterServer, StalenessBoundHoldsBackFastWorkers) {
  constexpr int64_t kBound = 2;
  std::atomic<int64_t> slow_pushes{0};
  std::atomic<bool> over{false};
  int64_t furthest = 0;
  ShardServerOptions server{.workers = 2, .staleness = kBound, .optimizer = {}, .before_update = {}};
  run_with_servers(server, 2, [&](comm::Group& world, comm::Group& workers) {
    SmallReplica mine(1);
    ParameterServer strategy(world, workers, {});
    strategy.start(mine.replica);
    strategy.open(mine.replica, 0, 60);
    for (int64_t own = 1; strategy.take(false); ++own) {
      mine.set_gradient(own);
      if (workers.rank() == 1) {
        for (int i = 0; i < 1000 && !over; ++i) std::this_thread::yield();
        ++slow_pushes;
      }
      mine.step(strategy);
      if (workers.rank() == 0 && slow_pushes > 0) furthest = std::max(furthest, own - slow_pushes);
    }
    over = true;
    EXPECT_EQ(strategy.close(mine.replica), 60);
    strategy.leave();
  });
  EXPECT_LE(furthest, kBound);
}

TEST(ParameterServer, StaleUpdatesCanBeScaledDown) {
  for (const bool slow_down : {false, true}) {
    const optim::OptimizerOptions sgd{.kind = "sgd", .weight_decay = 0, .momentum = 0};
    ShardServerOptions server{.workers = 2, .staleness_lr = slow_down, .optimizer = sgd, .before_update = {}};
    run_with_servers(server, 1, [&](comm::Group& world, comm::Group& workers) {
      SmallReplica mine(1, sgd);
      mine.context.lr = 1;
      ParameterServer strategy(world, workers, {});
      strategy.start(mine.replica);
      strategy.open(mine.replica, 0, 5);
      if (workers.rank() == 1) {
        mine.params.grads.zero_();
        for (int i = 0; i < 4; ++i) mine.step(strategy);
      }
      workers.barrier();
      const at::Tensor before = mine.params.values.clone();
      if (workers.rank() == 0) {  // its parameters are four updates old
        mine.params.grads.fill_(1);
        mine.step(strategy);
        const double moved = (before - mine.params.values).mean().item<double>();
        EXPECT_NEAR(moved, slow_down ? 0.25 : 1, 1e-6);
      }
      strategy.close(mine.replica);
      strategy.leave();
    });
  }
}

TEST(ParameterServer, StoppingFinishesEveryTakenTicket) {
  ShardServerOptions server{.workers = 2, .optimizer = {}, .before_update = {}};
  std::atomic<int64_t> done{0};
  run_with_servers(server, 1, [&](comm::Group& world, comm::Group& workers) {
    SmallReplica mine(1);
    ParameterServer strategy(world, workers, {});
    strategy.start(mine.replica);
    strategy.open(mine.replica, 10, 1000);
    int64_t own = 0;
    while (const auto ticket = strategy.take(workers.rank() == 1 && own == 3)) {
      mine.set_gradient(*ticket);
      mine.step(strategy);
      ++own;
      ++done;
    }
    const int64_t taken = strategy.close(mine.replica);
    EXPECT_EQ(taken, done);
    EXPECT_LT(taken, 990);
    strategy.leave();
  });
}

TEST(ParameterServer, ResumesWithADifferentNumberOfServers) {
  const auto train = [](SmallReplica& mine, ParameterServer& strategy, int64_t first, int64_t last) {
    strategy.open(mine.replica, first, last);
    while (const auto ticket = strategy.take(false)) {
      mine.set_gradient(*ticket);
      mine.step(strategy);
    }
    strategy.close(mine.replica);
  };
  ShardServerOptions server{.workers = 1, .optimizer = {}, .before_update = {}};
  SmallReplica straight(1), before(1), after(2), foil(2);
  std::vector<StateTensor> saved;
  run_with_servers(server, 1, [&](comm::Group& world, comm::Group& workers) {
    ParameterServer strategy(world, workers, {});
    strategy.start(straight.replica);
    train(straight, strategy, 0, 10);
    strategy.leave();
  });
  run_with_servers(server, 2, [&](comm::Group& world, comm::Group& workers) {
    ParameterServer strategy(world, workers, {});
    strategy.start(before.replica);
    train(before, strategy, 0, 4);
    saved = strategy.state();
    strategy.leave();
  });
  for (SmallReplica* mine : {&after, &foil}) {
    run_with_servers(server, 3, [&](comm::Group& world, comm::Group& workers) {
      ParameterServer strategy(world, workers, {});
      strategy.start(mine->replica);
      const auto into = strategy.state();
      ASSERT_EQ(into.size(), saved.size());
      mine->params.values.copy_(before.params.values);
      for (size_t i = 0; i < into.size(); ++i) {
        if (mine != &foil || into[i].name != "server.exp_avg")
          at::Tensor(into[i].tensor).copy_(saved[i].tensor);
      }
      strategy.resumed(mine->replica);
      train(*mine, strategy, 4, 10);
      EXPECT_EQ(strategy.staleness(), (std::vector<std::vector<int64_t>>{{10}}));
      strategy.leave();
    });
  }
  EXPECT_TRUE(at::equal(straight.params.values, after.params.values));
  EXPECT_FALSE(at::equal(straight.params.values, foil.params.values)) << "the moments are part of it";
}

TEST(ParameterServer, WorkerLostMidPushIsNamedAndItsPushDiscarded) {
  for (const int64_t staleness : {ShardServerOptions::kFree, int64_t{0}, int64_t{1}}) {
    std::atomic<int64_t> updates{0};
    ShardServerOptions server{
        .workers = 2, .staleness = staleness, .optimizer = {}, .before_update = [&](int64_t) { ++updates; }};
    std::string server_said, worker_said;
    run_ranks(3, [&](comm::Group& world) {
      if (world.rank() == 2) {
        try {
          serve(world, server);
        } catch (const CommError& error) {
          server_said = error.what();
        }
        return;
      }
      const auto workers = world.split(0, world.rank());
      if (world.rank() == 1) {  // says that a gradient follows, and goes
        auto links = open_links(world, 2);
        comm::broadcast_text(world, "", 0);
        SmallReplica mine(1);
        take_parameters_of_rank_zero(mine.replica, *workers);
        workers->barrier();
        links.front().send_plain(Request{.ask = Ask::kPush, .from = 0, .to = 0, .lr = 1, .scale = 1}).wait();
        return;
      }
      SmallReplica mine(1);
      LockstepServer strategy(world, *workers, {});
      strategy.start(mine.replica);
      try {
        for (int i = 0; i < 1000000; ++i) mine.step(strategy);
      } catch (const CommError& error) {
        worker_said = error.what();
      }
    });
    EXPECT_NE(server_said.find("worker 1"), std::string::npos) << server_said;
    EXPECT_FALSE(worker_said.empty());
    if (staleness == 0) {
      EXPECT_EQ(updates, 0) << "half of the sum was missing";
    }
  }
}

}  // namespace
}  // namespace syncopate::parallel
