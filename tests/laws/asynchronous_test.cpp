// What must hold where workers run free, and where servers make it an all-reduce by other means.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/train/checkpoint.h"
#include "tests/laws/rig.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

Rig free_rig(const std::string& strategy, int workers) {
  Rig rig;
  rig.strategy.name = strategy;
  rig.workers = workers;
  rig.optim.lr = 3e-3;
  rig.optim.clip = 1;
  rig.dropout = 0.1;
  return rig;
}

Rig in_lockstep(int workers, int servers) {
  Rig rig = free_rig("parameter-server", workers);
  rig.strategy.staleness = std::to_string(0);
  rig.strategy.servers = servers;
  return rig;
}

TEST(Asynchronous, OneWorkerMatchesSingleBitForBit) {
  const Trace reference = train(free_rig("single", 1));
  ASSERT_EQ(reference.losses.size(), 50u);
  Rig shared_state = free_rig("hogwild", 1), bounded = free_rig("parameter-server", 1);
  shared_state.strategy.state = "shared";
  bounded.strategy.staleness = "3";
  for (const Rig& rig :
       {free_rig("hogwild", 1), shared_state, free_rig("parameter-server", 1), bounded, in_lockstep(1, 1)}) {
    const Trace free = train(rig);
    EXPECT_EQ(reference.losses, free.losses) << rig.strategy.name;
    EXPECT_TRUE(at::equal(reference.parameters[0], free.parameters[0])) << rig.strategy.name;
    EXPECT_EQ(reference.accuracy, free.accuracy);
    Rig foil = rig;
    foil.optim.lr *= 1.001;
    EXPECT_NE(reference.losses, train(foil).losses) << rig.strategy.name;
  }
}

class Servers : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, Servers, testing::Values(2, 3, 4));

TEST_P(Servers, LockstepMatchesAllReduceBitForBit) {
  const Trace reference = train(free_rig("all-reduce", GetParam()));
  const Trace served = train(in_lockstep(GetParam(), 1));
  EXPECT_EQ(reference.losses, served.losses);
  for (const at::Tensor& parameters : served.parameters)
    EXPECT_TRUE(at::equal(reference.parameters[0], parameters));
  EXPECT_EQ(reference.accuracy, served.accuracy);

  // Rows that were not read are zeros, sent or not.
  Rig dense = in_lockstep(GetParam(), 1);
  dense.strategy.sparse_rows = false;
  EXPECT_EQ(reference.losses, train(dense).losses);

  // Two servers add up the squares of the norm in another order.
  EXPECT_LT(difference(reference.losses, train(in_lockstep(GetParam(), 2)).losses), 1e-6);
  Rig unclipped = free_rig("all-reduce", GetParam()), cut = in_lockstep(GetParam(), 2);
  unclipped.optim.clip = cut.optim.clip = 0;
  const Trace plain = train(unclipped);
  EXPECT_EQ(plain.losses, train(cut).losses);
  EXPECT_NE(plain.losses, reference.losses);

  Rig foil = in_lockstep(GetParam(), 1);
  foil.strategy.staleness = "inf";
  EXPECT_FALSE(at::equal(train(foil).parameters[0], reference.parameters[0]));
}

TEST(Asynchronous, EveryTicketIsOneUpdateAndReplicasEndEqual) {
  for (const std::string strategy : {"hogwild", "parameter-server"}) {
    for (const std::string staleness : {"inf", "1"}) {
      Rig rig = free_rig(strategy, 3);
      rig.strategy.staleness = staleness;
      rig.strategy.servers = 2;
      const Trace trace = train(rig);
      EXPECT_EQ(trace.losses.size(), 150u) << "every worker's loss, in the order of tickets";
      ASSERT_EQ(trace.updates.size(), 3u);
      EXPECT_EQ(std::accumulate(trace.updates.begin(), trace.updates.end(), int64_t{0}), 150);
      ASSERT_EQ(trace.staleness.size(), 3u);
      for (size_t rank = 0; rank < 3; ++rank) {
        EXPECT_TRUE(at::equal(trace.parameters[rank], trace.parameters[0]));
        const auto& counts = trace.staleness[rank];
        EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), trace.updates[rank]);
      }
      double begin = 0, end = 0;
      for (size_t i = 0; i < 20; ++i)
        begin += trace.losses[i], end += trace.losses[trace.losses.size() - 1 - i];
      EXPECT_LT(end, begin) << "it learns";
    }
  }
}

TEST(Asynchronous, EvaluatedModelIsTheSavedModelBitForBit) {
  for (const std::string strategy : {"hogwild", "parameter-server"}) {
    const TempDir folder;
    Rig rig = free_rig(strategy, 3);
    rig.checkpoint = folder / "checkpoint.safetensors";
    rig.eval_every = rig.save_every = 7;
    rig.steps = 14;
    const Trace trace = train(rig);
    ASSERT_EQ(trace.saved.size(), 2u);
    std::set<double> scores;
    for (const auto& [step, parameters] : trace.saved) {
      const auto during = std::find_if(trace.evals.begin(), trace.evals.end(),
                                       [&](const auto& eval) { return eval.step == step; });
      ASSERT_NE(during, trace.evals.end()) << step;
      for (const int workers : {1, 2, 3}) {
        const auto again = evaluate_parameters(parameters, workers);
        EXPECT_EQ(again.loss, during->loss) << workers;
        EXPECT_EQ(again.measures, during->measures) << workers;
      }
      EXPECT_EQ(during->model, strategy == "hogwild" ? "shared by all workers" : "server");
      scores.insert(during->loss);
    }
    EXPECT_EQ(scores.size(), 2u) << "other parameters, another score";
    EXPECT_TRUE(at::equal(trace.saved.back().second, trace.parameters[2]));
  }
}

TEST(Asynchronous, ResumesBitForBitWithoutRaces) {
  Rig shared_state = free_rig("hogwild", 1);
  shared_state.strategy.state = "shared";
  for (const Rig& straight : {free_rig("hogwild", 1), shared_state, free_rig("parameter-server", 1),
                              in_lockstep(1, 1), in_lockstep(3, 1), in_lockstep(3, 2)}) {
    const TempDir folder;
    const Trace reference = train(straight);
    auto [first, second, before, after, joined] =
        stopped_and_resumed(straight, folder / "checkpoint.safetensors", 17);
    ASSERT_GE(before.losses.size(), 17u);
    ASSERT_LT(before.losses.size(), 25u);
    EXPECT_EQ(joined, reference.losses) << straight.strategy.name;
    EXPECT_TRUE(at::equal(after.parameters.back(), reference.parameters.back()));
    EXPECT_EQ(after.staleness, reference.staleness);

    train(first);
    train::Checkpoint forgetful = train::load_checkpoint(first.checkpoint);
    for (auto& [name, tensor] : forgetful.tensors) {
      if (name.find("exp_avg") != std::string::npos) tensor.zero_();
    }
    train::save_checkpoint(first.checkpoint, forgetful);
    EXPECT_NE(train(second).losses, after.losses) << "the optimizer's moments are part of a checkpoint";
  }
}

TEST(Asynchronous, CheckpointHoldsTheStateOfEveryProcess) {
  const TempDir folder;
  Rig rig = free_rig("hogwild", 3);
  rig.checkpoint = folder / "checkpoint.safetensors";
  rig.stop_after = 6;
  train(rig);
  const train::Checkpoint saved = train::load_checkpoint(rig.checkpoint);
  int moments = 0, counts = 0;
  int64_t updates = 0;
  for (const auto& [name, tensor] : saved.tensors) {
    moments += name.ends_with("optimizer.exp_avg.classifier.weight") ? 1 : 0;
    counts += name.ends_with("staleness") ? 1 : 0;
    if (name.ends_with("optimizer.steps")) updates += tensor.item<int64_t>();
  }
  EXPECT_EQ(moments, 3);
  EXPECT_EQ(counts, 3);
  EXPECT_EQ(updates, saved.state.at("trainer").at("steps_done").get<int64_t>());
  rig.resume = true;
  rig.stop_after = 0;
  const Trace rest = train(rig);
  EXPECT_EQ(std::accumulate(rest.updates.begin(), rest.updates.end(), int64_t{0}), 150);
  EXPECT_EQ(static_cast<int64_t>(rest.losses.size()) + updates, 150);
}

}  // namespace
}  // namespace syncopate::test
