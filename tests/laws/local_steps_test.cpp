// The laws of workers that update by themselves: Local SGD, post-local SGD, DiLoCo.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "syncopate/data/sampler.h"
#include "syncopate/train/checkpoint.h"
#include "tests/laws/family_rig.h"
#include "tests/laws/rig.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

Rig local_rig(const std::string& strategy, int workers) {
  Rig rig;
  rig.strategy.name = strategy;
  rig.strategy.every = 5;
  rig.workers = workers;
  rig.steps = 20;
  rig.optim.lr = 3e-3;
  rig.optim.clip = 0;
  return rig;
}

Rig with_sgd(Rig rig) {
  rig.optim.name = "sgd";
  rig.optim.momentum = 0;
  rig.optim.lr = 0.03;
  return rig;
}

bool same_bits(const Trace& a, const Trace& b) {
  for (size_t rank = 0; rank < a.parameters.size(); ++rank) {
    if (!at::equal(a.parameters[rank], b.parameters[rank])) return false;
  }
  return true;
}

class LocalLaw : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, LocalLaw, testing::Values(2, 3, 4));

TEST_P(LocalLaw, AveragingEveryStepWithSgdMatchesAllReduce) {
  // Whole batches; shares of different sizes; a last batch with examples for one rank alone.
  for (const auto& [batch, examples] : {std::pair<int64_t, int64_t>{12, 72}, {11, 70}, {12, 25}}) {
    Rig reference = with_sgd(local_rig("all-reduce", GetParam())),
        local = with_sgd(local_rig("local-sgd", GetParam()));
    reference.global_batch = local.global_batch = batch;
    reference.examples = local.examples = examples;
    local.strategy.every = 1;
    const Trace expected = train(reference), found = train(local);
    EXPECT_LT(difference(expected.parameters[0], found.parameters[0]), 1e-6) << batch << " " << examples;
    EXPECT_LT(difference(expected.losses, found.losses), 1e-6) << batch << " " << examples;
    EXPECT_DOUBLE_EQ(expected.accuracy, found.accuracy);
    local.strategy.every = 5;
    EXPECT_GT(difference(expected.parameters[0], train(local).parameters[0]), 1e-4);
  }
}

/// The mean over the global batch of each step, from what each rank had of it: a toy example counts as one.
std::vector<double> global_means(const Trace& trace, const Rig& rig, int64_t first_step = 0) {
  std::vector<double> means;
  for (size_t i = 0; i < trace.own_losses[0].size(); ++i) {
    const int64_t per_epoch = (rig.examples + rig.global_batch - 1) / rig.global_batch;
    const int64_t in_epoch = (first_step + static_cast<int64_t>(i)) % per_epoch;
    const int64_t size = std::min(rig.global_batch, rig.examples - in_epoch * rig.global_batch);
    double sum = 0;
    for (int rank = 0; rank < rig.workers; ++rank) {
      const auto own = static_cast<double>(data::share(size, rig.workers, rank).size());
      if (own > 0) sum += own * trace.own_losses[static_cast<size_t>(rank)][i];
    }
    means.push_back(sum / static_cast<double>(size));
  }
  return means;
}

TEST_P(LocalLaw, RecordedLossesAreMeansOverGlobalBatches) {
  for (const char* strategy : {"local-sgd", "diloco", "all-reduce"}) {
    Rig rig = local_rig(strategy, GetParam());
    rig.strategy.every = 8;
    rig.global_batch = 11;  // shares of different sizes
    rig.examples = 69;      // the last batch of an epoch has examples for few
    const Trace trace = train(rig);
    ASSERT_EQ(trace.losses.size(), 20u) << strategy;
    EXPECT_LT(difference(global_means(trace, rig), trace.losses), 1e-12) << strategy;
    // The foil: rank 0's own, which has examples in every step.
    EXPECT_GT(difference(trace.own_losses[0], trace.losses), 1e-3) << strategy;
  }
}

TEST_P(LocalLaw, AStopBetweenAveragesLeavesEveryLossOnRecord) {
  Rig rig = local_rig("local-sgd", GetParam());
  rig.strategy.every = 8;
  rig.save_every = 3;  // workers speak of their losses there, and of the stop
  const TempDir folder;
  const Resumed parts = stopped_and_resumed(rig, folder / "checkpoint.safetensors", 11);
  EXPECT_EQ(parts.before.losses.size(), 12u);
  ASSERT_EQ(parts.losses.size(), 20u);
  EXPECT_LT(difference(global_means(parts.before, rig), parts.before.losses), 1e-12);
  EXPECT_LT(difference(global_means(parts.after, rig, 12), parts.after.losses), 1e-12);
  EXPECT_EQ(parts.losses, train(rig).losses) << "bit for bit those of a run that was not stopped";
  rig.save_every = 0;
  const Trace rarely = train(rig);
  EXPECT_EQ(parts.losses, rarely.losses) << "when ranks talk of a loss does not change it";
}

TEST_P(LocalLaw, DiLoCoWithRateOneAndNoMomentumMatchesLocalSgd) {
  Rig outer = with_sgd(local_rig("diloco", GetParam()));  // Adam makes much of a gradient that is nearly zero
  outer.optim.momentum = 0.9;
  outer.global_batch = 11;
  const Trace momentum = train(outer);
  outer.strategy.outer_lr = 1;
  outer.strategy.outer_momentum = 0;
  Rig local = outer;
  local.strategy.name = "local-sgd";
  const Trace expected = train(local), found = train(outer);
  EXPECT_LT(difference(expected.parameters[0], found.parameters[0]), 1e-6);
  EXPECT_LT(difference(expected.losses, found.losses), 1e-5);
  EXPECT_GT(difference(expected.parameters[0], momentum.parameters[0]), 1e-3);
}

TEST_P(LocalLaw, PostLocalStartAtTheEndMatchesDdpBitForBit) {
  Rig ddp = local_rig("ddp", GetParam());
  ddp.optim.clip = 1;
  ddp.dropout = 0.1;
  const Trace expected = train(ddp);
  Rig local = ddp;
  local.strategy.name = "local-sgd";
  for (const int64_t start : {20, 1000}) {
    local.strategy.post_local_start = start;
    const Trace found = train(local);
    EXPECT_TRUE(same_bits(expected, found)) << start;
    EXPECT_EQ(expected.losses, found.losses) << start;
  }
  local.strategy.post_local_start = 10;
  const Trace switched = train(local);
  EXPECT_TRUE(std::equal(expected.losses.begin(), expected.losses.begin() + 10, switched.losses.begin()));
  EXPECT_FALSE(same_bits(expected, switched));
}

TEST_P(LocalLaw, AllWorkersEndWithOneModel) {
  for (const char* strategy : {"local-sgd", "diloco"}) {
    for (const int64_t steps : {20, 18}) {  // at an average, and between two
      Rig rig = local_rig(strategy, GetParam());
      rig.steps = steps;
      const Trace trace = train(rig);
      const bool outer = std::string(strategy) == "diloco" && steps == 20;
      EXPECT_EQ(trace.evaluated, outer ? "outer model (average of the workers)" : "average of the workers");
      for (const at::Tensor& replica : trace.parameters) EXPECT_TRUE(at::equal(replica, trace.parameters[0]));
    }
  }
}

/// What may be under way between two averages, by name.
std::vector<std::pair<std::string, Rig>> variants(int workers) {
  std::vector<std::pair<std::string, Rig>> all;
  const auto add = [&](const std::string& name, const std::string& strategy, const auto& change) {
    Rig rig = local_rig(strategy, workers);
    rig.steps = 40;
    rig.dropout = 0.1;
    rig.optim.clip = 1;
    rig.strategy.every = 6;
    change(rig);
    all.emplace_back(name, rig);
  };
  add("keep", "local-sgd", [](Rig&) {});
  add("average", "local-sgd", [](Rig& rig) { rig.strategy.moments = "average"; });
  add("reset", "local-sgd", [](Rig& rig) { rig.strategy.moments = "reset"; });
  add("overlapped", "local-sgd", [](Rig& rig) { rig.strategy.overlap_average = true; });
  add("overlapped, moments averaged", "local-sgd", [](Rig& rig) {
    rig.strategy.delay = 5;
    rig.strategy.moments = "average";
  });
  add("post-local", "local-sgd", [](Rig& rig) { rig.strategy.post_local_start = 9; });
  add("coded", "local-sgd", [](Rig& rig) {
    rig.strategy.overlap_average = true;
    rig.codec.name = "int4";
  });
  add("diloco", "diloco", [](Rig&) {});
  const auto stream = [](Rig& rig) {
    rig.strategy.fragments = 3;
    rig.strategy.delay = 5;  // longer than two fragments are apart
    rig.strategy.mixing = 0.5;
    rig.strategy.outer_lr = 0.4;
  };
  add("streaming", "diloco", stream);
  add("streaming, coded", "diloco", [&](Rig& rig) {
    stream(rig);
    rig.codec.name = "random-k";  // which values travel depends on the step in which the exchange began
    rig.codec.ratio = 0.2;
  });
  return all;
}

TEST_P(LocalLaw, ResumesBitForBit) {
  for (auto& [name, rig] : variants(GetParam())) {
    const TempDir folder;
    rig.examples = 301;
    for (const int64_t stop : {14, 18}) {  // between two averages with one under way, and at one
      Rig straight = rig;
      straight.save_every = stop;
      straight.checkpoint = folder / "straight.safetensors";
      const Trace reference = train(straight);
      Rig first = straight;
      first.checkpoint = folder / "stopped.safetensors";
      first.stop_after = stop;
      const Trace before = train(first);
      ASSERT_EQ(before.losses.size(), static_cast<size_t>(stop)) << name;
      Rig second = first;
      second.stop_after = 0;
      second.resume = true;
      const Trace after = train(second);
      std::vector<double> joined = before.losses;
      joined.insert(joined.end(), after.losses.begin(), after.losses.end());
      EXPECT_EQ(joined, reference.losses) << name << " " << stop;
      EXPECT_TRUE(same_bits(after, reference)) << name << " " << stop;
    }
  }
}

TEST_P(LocalLaw, EveryCheckpointEntryMatters) {
  for (auto& [name, rig] : variants(GetParam())) {
    if (name == "reset" || name == "post-local") continue;
    const TempDir folder;
    rig.examples = 301;
    rig.save_every = rig.stop_after = 14;
    rig.checkpoint = folder / "stopped.safetensors";
    train(rig);
    const train::Checkpoint saved = train::load_checkpoint(rig.checkpoint);
    rig.stop_after = 0;
    rig.resume = true;
    const Trace reference = train(rig);
    // An entry is what stands under one name, by parameter.
    const auto entry_of = [](const std::string& tensor) {
      for (const char* model : {".bert.", ".classifier."}) {
        if (const size_t at = tensor.find(model); at != std::string::npos) return tensor.substr(0, at);
      }
      return tensor;
    };
    std::set<std::string> entries;
    for (const auto& [tensor, value] : saved.tensors) {
      const bool of_strategy = (tensor.starts_with("rank1.strategy.") || tensor.starts_with("strategy.")) &&
                               !tensor.ends_with("local_steps") &&
                               !tensor.ends_with(".scale");  // a loss scale's; this is in fp32
      const std::string entry = entry_of(tensor);
      if (of_strategy || entry == "rank1.model" || entry == "rank1.optimizer.exp_avg") entries.insert(entry);
    }
    EXPECT_TRUE(entries.contains("rank1.model") && entries.contains("rank1.optimizer.exp_avg"));
    EXPECT_TRUE(entries.contains("rank1.strategy.examples"));
    EXPECT_EQ(entries.contains("strategy.anchor"), rig.strategy.name == "diloco" || rig.codec.name != "none");
    for (const std::string& entry : entries) {
      train::Checkpoint damaged = saved;
      for (auto& [tensor, value] : damaged.tensors) {
        if (entry_of(tensor) == entry) value = value * 1.5 + 0.25;
      }
      train::save_checkpoint(rig.checkpoint, damaged);
      EXPECT_FALSE(same_bits(reference, train(rig))) << name << ": " << entry;
    }
  }
}

TEST_P(LocalLaw, EvaluationDoesNotAffectTraining) {
  for (const auto& [name, rig] : variants(GetParam())) {
    Rig looking = rig;
    looking.eval_every = 1;
    const Trace expected = train(rig);
    EXPECT_TRUE(same_bits(expected, train(looking))) << name;
    looking.seed += 1;
    EXPECT_FALSE(same_bits(expected, train(looking))) << name;
  }
}

TEST_P(LocalLaw, EvaluationCountsTheBytesItWaitsFor) {
  Rig rig = local_rig("local-sgd", GetParam());
  rig.examples = 600;
  rig.strategy.every = 7;
  rig.strategy.overlap_average = true;
  rig.codec.name = "int8";  // its second round starts when somebody waits for it
  const auto sent = [](const Trace& trace) {
    return std::accumulate(trace.bytes.begin(), trace.bytes.end(), 0.0);
  };
  const double quiet = sent(train(rig));
  rig.eval_every = 9;  // two steps after an average began
  // Beside them only what workers tell each other of their losses in those steps.
  const double watched = sent(train(rig));
  EXPECT_GE(watched, quiet);
  EXPECT_LT(watched, quiet + 5000);
}

TEST_P(LocalLaw, SendsNothingBetweenAverages) {
  Rig rig = local_rig("local-sgd", GetParam());
  rig.examples = 600;  // the run is less than an epoch
  const auto expect_silence = [](const Trace& trace, int64_t apart, const std::string& name) {
    for (size_t step = 0; step < trace.bytes.size(); ++step) {
      const bool talks = (step + 1) % static_cast<size_t>(apart) == 0;
      EXPECT_EQ(trace.bytes[step] > 0, talks) << name << ", step " << step + 1;
    }
  };
  expect_silence(train(rig), 5, "local-sgd");
  rig.strategy.overlap_average = true;
  expect_silence(train(rig), 5, "overlapped");
  rig.strategy.name = "diloco";
  rig.strategy.every = 10;
  rig.strategy.fragments = 2;
  rig.strategy.delay = 3;
  const Trace fragments = train(rig);
  expect_silence(fragments, 5, "fragments");
  rig.strategy.fragments = 1;
  const Trace whole = train(rig);
  expect_silence(whole, 10, "diloco");
  EXPECT_NEAR(fragments.bytes[4] + fragments.bytes[9], whole.bytes[9], 100) << "a fragment is a part";
  EXPECT_LT(fragments.bytes[4], 0.8 * whole.bytes[9]);
  rig.strategy.name = "all-reduce";
  for (const double bytes : train(rig).bytes) EXPECT_GT(bytes, 0);
}

TEST(LocalLaws, AccumulationMatchesOneLargerBatch) {
  const Trace whole = train(with_sgd(local_rig("local-sgd", 2)));
  Rig parts = with_sgd(local_rig("local-sgd", 2));
  parts.accumulate = 3;
  EXPECT_LT(difference(whole.parameters[0], train(parts).parameters[0]), 1e-6);
  parts.strategy.every = 15;  // what H would be if it counted micro-batches
  EXPECT_GT(difference(whole.parameters[0], train(parts).parameters[0]), 1e-4);
}

TEST(LocalLaws, OneLocalSgdWorkerMatchesSingleBitForBit) {
  const Trace single = train(local_rig("single", 1));
  Rig rig = local_rig("local-sgd", 1);
  EXPECT_TRUE(same_bits(single, train(rig)));
  rig.strategy.overlap_average = true;
  EXPECT_TRUE(same_bits(single, train(rig)));
  rig.strategy.name = "diloco";
  rig.strategy.delay = 0;
  EXPECT_FALSE(same_bits(single, train(rig))) << "the outer optimizer looks ahead";
}

TEST(LocalLaws, MomentsAreKeptAveragedOrReset) {
  std::vector<Trace> traces;
  for (const char* moments : {"keep", "average", "reset"}) {
    Rig rig = local_rig("local-sgd", 2);
    rig.strategy.moments = moments;
    traces.push_back(train(rig));
  }
  EXPECT_FALSE(same_bits(traces[0], traces[1]));
  EXPECT_FALSE(same_bits(traces[0], traces[2]));
  EXPECT_FALSE(same_bits(traces[1], traces[2]));
  // Averaged in every step, the momentum of SGD is that of the mean gradient.
  Rig reference = with_sgd(local_rig("all-reduce", 3)), local = with_sgd(local_rig("local-sgd", 3));
  reference.optim.momentum = local.optim.momentum = 0.9;
  reference.examples = local.examples = 600;
  reference.global_batch = local.global_batch = 11;
  local.strategy.every = 1;
  local.strategy.moments = "average";
  const Trace expected = train(reference);
  EXPECT_LT(difference(expected.parameters[0], train(local).parameters[0]), 2e-6);
  local.strategy.moments = "reset";
  EXPECT_GT(difference(expected.parameters[0], train(local).parameters[0]), 1e-3);
}

}  // namespace
}  // namespace syncopate::test
