#include "syncopate/parallel/averagers/coded.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/comm/metering/metered.h"
#include "syncopate/parallel/averagers/all_reduce.h"
#include "syncopate/parallel/averagers/low_rank.h"
#include "syncopate/parallel/strategies/every_step.h"
#include "syncopate/parallel/strategies/one_bit.h"
#include "tests/parallel/small_replica.h"

namespace syncopate::parallel {
namespace {

using test::SmallReplica;

/// One rank of a group, with gradients that are set.
struct Rank {
  Rank(comm::Group& its_group, const optim::OptimizerOptions& options = {})
      : group(its_group), small(1, options), params(small.params) {}
  comm::Group& group;
  SmallReplica small;
  tensor::FlatParams& params;
};

void on_ranks(int size, const std::function<void(comm::Metered&)>& work) {
  auto groups = comm::open_in_process(size, std::chrono::seconds(30));
  std::vector<std::thread> threads;
  std::vector<std::string> errors(groups.size());
  for (size_t rank = 0; rank < groups.size(); ++rank) {
    threads.emplace_back([&, rank] {
      comm::Metered group(std::move(groups[rank]));
      try {
        work(group);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

std::unique_ptr<Averager> make(const std::string& name, comm::Group& group) {
  if (name == "power-sgd") return std::make_unique<LowRank>(group, LowRank::Options{.rank = 1});
  return std::make_unique<Coded>(group, codec::make_codec({.name = name, .ratio = 0.1}), Coded::Options{});
}

at::Tensor summed(const at::Tensor& mine, comm::Group& group) {
  const at::Tensor sum = mine.to(at::kDouble);
  group.all_reduce(sum, comm::Op::kSum).wait();
  return sum;
}

/// What all ranks keep, on the flat array.
at::Tensor kept_by_all(Averager& averager, Rank& rank) {
  at::Tensor kept = at::zeros({rank.params.size()}, at::kDouble);
  for (const StateTensor& each : averager.state()) {
    if (each.laid_at) kept += each.tensor.to(at::kDouble);
  }
  return summed(kept, rank.group);
}

class FeedingBack : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Codecs, FeedingBack,
                         testing::Values("int8", "int4", "sign", "top-k", "random-k", "power-sgd"),
                         [](const auto& codec) {
                           std::string name = codec.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(FeedingBack, SentPlusResidualEqualsTheGradients) {
  for (const int size : {2, 3}) {
    on_ranks(size, [](comm::Metered& group) {
      Rank rank(group);
      const auto averager = make(GetParam(), group);
      averager->attach(rank.small.replica);
      at::Tensor arrived = at::zeros({rank.params.size()}, at::kDouble), given = arrived.clone();
      const int64_t half = rank.params.entries()[3].offset;
      for (int64_t step = 0; step < 5; ++step) {
        averager->begin(step);
        rank.small.set_gradient(10 * step + group.rank());
        given += rank.params.grads.to(at::kDouble);
        // Two pieces under way at once.
        comm::Pending first = averager->start({rank.params.grads.narrow(0, 0, half), 0});
        comm::Pending second =
            averager->start({rank.params.grads.narrow(0, half, rank.params.size() - half), half});
        first.wait();
        second.wait();
        arrived += rank.params.grads.to(at::kDouble);
      }
      const at::Tensor all = summed(given, group), kept = kept_by_all(*averager, rank);
      // Nothing belongs to what lies between parameters, and nothing is kept for it: a checkpoint does not
      // hold it.
      at::Tensor between = kept.clone();
      int64_t gaps = between.numel();
      for (const auto& entry : rank.params.entries()) {
        between.narrow(0, entry.offset, entry.size).zero_();
        gaps -= entry.size;
      }
      EXPECT_GT(gaps, 0);
      EXPECT_EQ(between.abs().max().item<double>(), 0);
      for (const auto& entry : rank.params.entries()) {
        const auto part = [&](const at::Tensor& flat) { return flat.narrow(0, entry.offset, entry.size); };
        EXPECT_TRUE(at::allclose(part(arrived) + part(kept), part(all), 1e-5, 1e-5)) << entry.name;
      }
      EXPECT_FALSE(at::allclose(arrived, all, 1e-4, 1e-4));  // something was kept indeed
    });
  }
}

TEST_P(FeedingBack, KeepsRowResidualsUntilTheRowIsUsedAgain) {
  on_ranks(2, [](comm::Metered& group) {
    Rank rank(group);
    const auto averager = make(GetParam(), group);
    averager->attach(rank.small.replica);
    const at::Tensor table = rank.small.model->row_tables().front();
    const auto* entry = rank.params.find(table);
    const int64_t width = table.size(1);
    const at::Tensor rows = at::arange(3, 33, at::kLong);
    at::Tensor packed = at::zeros({30, width});
    Rng rng(mix_key(4, group.rank()));
    for (int64_t i = 0; i < packed.numel(); ++i) {
      packed.data_ptr<float>()[i] = static_cast<float>(rng.uniform() - 0.5);
    }
    const at::Tensor all = summed(packed, group);
    averager->start({packed, entry->offset, rows}).wait();
    const at::Tensor kept =
        kept_by_all(*averager, rank).narrow(0, entry->offset, entry->size).view(table.sizes());
    EXPECT_TRUE(at::allclose(packed.to(at::kDouble) + kept.narrow(0, 3, 30), all, 1e-5, 1e-5));
    EXPECT_GT(kept.narrow(0, 3, 30).abs().max().item<double>(), 1e-4);
    EXPECT_EQ(kept.narrow(0, 0, 3).abs().max().item<double>(), 0);
    EXPECT_EQ(kept.narrow(0, 33, 7).abs().max().item<double>(), 0);
  });
}

TEST_P(FeedingBack, SurvivesNonFiniteGradients) {
  on_ranks(3, [](comm::Metered& group) {
    Rank rank(group);
    const auto averager = make(GetParam(), group);
    averager->attach(rank.small.replica);
    const auto step = [&](int64_t number, bool spoil) {
      averager->begin(number);
      rank.small.set_gradient(10 * number + group.rank());
      if (spoil && group.rank() == 1) rank.params.grads[20] = std::numeric_limits<float>::quiet_NaN();
      averager->start({rank.params.grads, 0}).wait();
      return at::isfinite(rank.params.grads).all().item<bool>();
    };
    EXPECT_TRUE(step(0, false));
    std::vector<at::Tensor> before;
    for (const auto& named : averager->state()) before.push_back(named.tensor.clone());
    EXPECT_FALSE(step(1, true));  // on every rank
    const auto after = averager->state();
    for (size_t i = 0; i < after.size(); ++i) {
      EXPECT_TRUE(at::isfinite(after[i].tensor).all().item<bool>()) << after[i].name;
      const bool own = after[i].name.find("owner") == std::string::npos;
      if (group.rank() == 1 && own) {
        EXPECT_TRUE(at::equal(after[i].tensor, before[i])) << after[i].name;
      }
    }
    EXPECT_TRUE(step(2, false));
  });
}

TEST(Coded, SendsExactlyItsBytes) {
  for (const int size : {2, 3, 4}) {
    on_ranks(size, [size](comm::Metered& group) {
      Rank rank(group);
      const auto codec = codec::make_codec({.name = "int8"});
      Coded averager(group, codec::make_codec({.name = "int8"}), {});
      averager.attach(rank.small.replica);
      constexpr int64_t kGrain = 512;
      const int64_t count = kGrain * 2;  // of which each of the first two owners has 512
      at::Tensor numbers = at::ones({count});
      const comm::Meter before = group.meter();
      averager.start({numbers, 0}).wait();
      const comm::Meter sent = group.meter() - before;
      EXPECT_EQ(sent.total().bytes, sent[comm::Kind::kSend].bytes);
      if (size == 2) {
        EXPECT_EQ(sent.total().bytes, 2 * codec->packed_bytes(kGrain));
      }
      const at::Tensor all = summed(at::full({1}, static_cast<double>(sent.total().bytes)), group);
      EXPECT_EQ(all.item<double>(), static_cast<double>(2 * (size - 1) * 2 * codec->packed_bytes(kGrain)));
      EXPECT_FLOAT_EQ(numbers[0].item<float>(), static_cast<float>(size));
    });
  }
}

TEST(LowRank, RejectsRanksThatAreTooLarge) {
  on_ranks(2, [](comm::Metered& group) {
    Rank rank(group);
    LowRank(group, {.rank = 8}).attach(rank.small.replica);
    try {
      LowRank(group, {.rank = 9}).attach(rank.small.replica);
      ADD_FAILURE();
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("8 is the largest"), std::string::npos) << error.what();
    }
    EXPECT_THROW(LowRank(group, {.rank = 0}), ConfigError);
  });
}

/// Steps of 1-bit Adam with gradients that are set; `spare` names a parameter without one until `from`.
struct OneBitRun {
  OneBitRun(comm::Group& group, int64_t warmup)
      : rank(group),
        strategy(group,
                 std::make_unique<EveryStep>(group, std::make_unique<AllReduce>(group), EveryStep::Options{}),
                 {.warmup = warmup}) {
    strategy.start(rank.small.replica);
  }
  void step(int64_t number, const std::function<void()>& change) {
    Replica& replica = rank.small.replica;
    rank.small.set_gradient(10 * number + rank.group.rank());
    const at::Tensor table = rank.small.model->row_tables().front();
    const std::vector<tensor::RowUse> rows{{table, at::arange(table.size(0), at::kLong)}};
    rank.small.context = {.step = number, .lr = 1e-3, .count = 2, .rows = rows};
    change();
    strategy.before_backward(replica, rank.small.context, true);
    rank.small.step(strategy);
    rank.small.context.rows = {};
  }
  Rank rank;
  OneBit strategy;
};

TEST(OneBit, LearnsWordsThatAreFirstSeenAfterTheWarmUp) {
  on_ranks(2, [](comm::Metered& group) {
    OneBitRun run(group, 4);
    const at::Tensor table = run.rank.small.model->row_tables().front();
    const auto* entry = run.rank.params.find(table);
    const auto grad = run.rank.params.grad_of(*entry).view(table.sizes());
    constexpr int64_t kLate = 7;  // this word
    for (int64_t step = 0; step < 12; ++step) {
      const at::Tensor before = table.detach()[kLate].clone();
      run.step(step, [&] {
        if (step < 8) {
          grad[kLate].zero_();
        } else {
          grad[kLate].fill_(0.3);
        }
      });
      const double moved = (table.detach()[kLate] - before).abs().max().item<double>();
      if (step < 8) {
        EXPECT_LT(moved, 1e-4) << step;  // weight decay alone
      } else {
        EXPECT_GT(moved, 4e-4) << step;
        EXPECT_LT(moved, 2e-2) << step;
      }
    }
  });
}

TEST(OneBit, ParametersWithoutGradientsDoNotJump) {
  on_ranks(2, [](comm::Metered& group) {
    OneBitRun run(group, 4);
    // A whole parameter, and one element of another one.
    const auto& entries = run.rank.params.entries();
    const auto& idle = entries[1];
    const auto& other = entries[3];
    const at::Tensor before = run.rank.params.values.clone();
    for (int64_t step = 0; step < 12; ++step) {
      run.step(step, [&] {
        if (step >= 6) return;
        run.rank.params.grad_of(idle).zero_();
        run.rank.params.grad_of(other)[0] = 0;
      });
    }
    const at::Tensor moved = (run.rank.params.values - before).abs();
    EXPECT_LT(moved.max().item<double>(), 0.3);
    EXPECT_GT(moved.max().item<double>(), 1e-3);
    EXPECT_LT(moved.narrow(0, idle.offset, idle.size).max().item<double>(), 1e-3);
    for (size_t i = 0; i + 1 < entries.size(); ++i) {
      const int64_t end = entries[i].offset + entries[i].size, gap = entries[i + 1].offset - end;
      EXPECT_EQ(run.rank.params.values.narrow(0, end, gap).abs().sum().item<double>(), 0);
    }
  });
}

TEST(OneBit, KeepsItsStateOnNonFiniteGradients) {
  on_ranks(2, [](comm::Metered& group) {
    OneBitRun run(group, 2);
    for (int64_t step = 0; step < 5; ++step) run.step(step, [] {});
    const at::Tensor before = run.rank.params.values.clone();
    run.step(5, [&] {
      if (group.rank() == 1) run.rank.params.grads[3] = std::numeric_limits<float>::infinity();
    });
    EXPECT_FALSE(std::isfinite(run.rank.small.last.gradient_norm));  // on both
    EXPECT_TRUE(at::equal(run.rank.params.values, before));
    run.step(6, [] {});
    EXPECT_TRUE(at::isfinite(run.rank.params.values).all().item<bool>());
    EXPECT_FALSE(at::equal(run.rank.params.values, before));
  });
}

TEST(OneBit, NeedsAdamOrSgd) {
  on_ranks(2, [](comm::Metered& group) {
    Rank rank(group, {.kind = "lamb"});
    OneBit strategy(group, std::make_unique<Single>(), {});
    EXPECT_THROW(strategy.start(rank.small.replica), ConfigError);
  });
}

}  // namespace
}  // namespace syncopate::parallel
