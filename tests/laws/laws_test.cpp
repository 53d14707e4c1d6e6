#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "syncopate/train/checkpoint.h"
#include "tests/laws/rig.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

Rig rig_for(const std::string& strategy, int workers) {
  Rig rig;
  rig.strategy.name = strategy;
  rig.workers = workers;
  rig.optim.lr = 3e-3;
  rig.optim.clip = 0;
  rig.dropout = 0.1;  // every law holds with dropout on
  return rig;
}

void expect_same_bits(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.losses, b.losses);
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (size_t rank = 0; rank < a.parameters.size(); ++rank) {
    EXPECT_TRUE(at::equal(a.parameters[rank], b.parameters[rank])) << "rank " << rank;
  }
}

void expect_replicas_equal(const Trace& trace) {
  for (const at::Tensor& parameters : trace.parameters)
    EXPECT_TRUE(at::equal(parameters, trace.parameters[0]));
}

class Law : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, Law, testing::Values(2, 3, 4));

TEST_P(Law, WorkersMatchOneWorkerWithTheWholeBatch) {
  const Trace whole = train(rig_for("single", 1));
  ASSERT_EQ(whole.losses.size(), 50u);
  for (const std::string strategy : {"gather-scatter", "all-reduce", "ddp"}) {
    const Trace shared = train(rig_for(strategy, GetParam()));
    EXPECT_LT(difference(whole.losses, shared.losses), 1e-6) << strategy;
    EXPECT_DOUBLE_EQ(whole.accuracy, shared.accuracy) << strategy;
    expect_replicas_equal(shared);
  }
  Rig foil = rig_for("all-reduce", GetParam());
  foil.global_batch = 6;  // what each worker would see if the batch were not shared
  EXPECT_GT(difference(whole.losses, train(foil).losses), 1e-3);
}

TEST_P(Law, DropoutFollowsTheExample) {
  for (const bool plain : {false, true}) {
    Rig one = rig_for("single", 1), many = rig_for("ddp", GetParam());
    one.plain = many.plain = plain;
    many.accumulate = 2;
    one.steps = many.steps = 12;
    const Trace whole = train(one);
    EXPECT_LT(difference(whole.losses, train(many).losses), 1e-6) << "plain " << plain;
    many.noise_by_rank = true;
    EXPECT_GT(difference(whole.losses, train(many).losses), 1e-3) << "plain " << plain;
  }
}

TEST_P(Law, UnevenWorkersAreWeightedByTheirExamples) {
  Rig one = rig_for("single", 1), many = rig_for("all-reduce", GetParam());
  one.global_batch = many.global_batch = 11;  // shares of different sizes for 2, 3 and 4 workers
  const Trace whole = train(one);
  EXPECT_LT(difference(whole.losses, train(many).losses), 1e-6);
  many.mean_of_means = true;
  EXPECT_GT(difference(whole.losses, train(many).losses), 1e-4);
}

TEST_P(Law, GatherScatterMatchesAllReduceBitForBit) {
  const Trace reference = train(rig_for("all-reduce", GetParam()));
  expect_same_bits(reference, train(rig_for("gather-scatter", GetParam())));
  Rig foil = rig_for("gather-scatter", GetParam());
  foil.optim.lr *= 1.001;
  EXPECT_NE(reference.losses, train(foil).losses);
}

TEST_P(Law, WholeExchangeMatchesPerParameterBitForBit) {
  const Trace reference = train(rig_for("all-reduce", GetParam()));
  Rig whole = rig_for("all-reduce", GetParam());
  whole.strategy.whole = true;
  expect_same_bits(reference, train(whole));
}

TEST_P(Law, DdpMatchesAllReduceBitForBit) {
  Rig plain = rig_for("all-reduce", GetParam());
  plain.optim.clip = 1;
  const Trace reference = train(plain);
  expect_replicas_equal(reference);
  for (const bool sparse : {true, false}) {
    for (const double bucket_mib : {25.0, 0.001}) {
      Rig ddp = plain;
      ddp.strategy.name = "ddp";
      ddp.strategy.sparse_rows = sparse;
      ddp.strategy.bucket_mib = ddp.strategy.first_bucket_mib = bucket_mib;
      expect_same_bits(reference, train(ddp));
    }
  }
  Rig shared = plain;
  shared.share = true;
  for (const std::string strategy : {"all-reduce", "ddp"}) {
    shared.strategy.name = strategy;
    const Trace trace = train(shared);
    EXPECT_TRUE(trace.shared);
    expect_same_bits(reference, trace);
  }
  EXPECT_FALSE(reference.shared);
  Rig foil = shared;
  foil.dropout = 0.11;
  EXPECT_NE(reference.losses, train(foil).losses);
}

TEST_P(Law, AccumulationMatchesOneLargerBatch) {
  const Trace whole = train(rig_for("single", 1));
  for (const std::string strategy : {"all-reduce", "ddp"}) {
    Rig rig = rig_for(strategy, GetParam());
    rig.accumulate = 3;
    EXPECT_LT(difference(whole.losses, train(rig).losses), 1e-6) << strategy;
  }
  Rig foil = rig_for("ddp", GetParam());
  foil.accumulate = 3;
  foil.global_batch = 13;
  foil.examples = 71;
  EXPECT_GT(difference(whole.losses, train(foil).losses), 1e-3);
}

TEST_P(Law, LastBatchMayHaveFewerExamplesThanWorkers) {
  for (const std::string strategy : {"all-reduce", "ddp"}) {
    Rig one = rig_for("single", 1), many = rig_for(strategy, GetParam());
    one.examples = many.examples = 25;  // batches of 12, 12 and 1: some ranks have no example in the third
    EXPECT_LT(difference(train(one).losses, train(many).losses), 1e-6) << strategy;
  }
}

TEST_P(Law, ResumesBitForBit) {
  for (const std::string strategy : {"all-reduce", "ddp"}) {
    const TempDir folder;
    Rig straight = rig_for(strategy, GetParam());
    straight.optim.clip = 1;
    const Trace reference = train(straight);

    auto [first, second, before, after, joined] =
        stopped_and_resumed(straight, folder / "checkpoint.safetensors", 17);
    ASSERT_EQ(before.losses.size(), 17u);
    EXPECT_EQ(joined, reference.losses);
    for (size_t rank = 0; rank < reference.parameters.size(); ++rank) {
      EXPECT_TRUE(at::equal(after.parameters[rank], reference.parameters[rank]));
    }

    Rig foil = second;  // the same parameters but another stream of dropout and order
    foil.seed = straight.seed + 1;
    EXPECT_NE(train(foil).losses, after.losses);
    train(first);  // again, for a checkpoint of step 17
    Rig shared = second;
    shared.share = true;
    const Trace together = train(shared);
    EXPECT_TRUE(together.shared);
    EXPECT_EQ(together.losses, after.losses) << "whether ranks share the update is not in a checkpoint";
    shared = first;
    shared.share = true;
    train(shared);
    EXPECT_EQ(train(second).losses, after.losses);
    train(first);
    train::Checkpoint forgetful = train::load_checkpoint(first.checkpoint);
    for (auto& [name, tensor] : forgetful.tensors) {
      if (!name.starts_with("model.")) tensor.zero_();
    }
    train::save_checkpoint(first.checkpoint, forgetful);
    EXPECT_NE(train(second).losses, after.losses) << "the optimizer's moments are part of a checkpoint";
  }
}

TEST(Laws, SeedDeterminesTheBits) {
  Rig rig = rig_for("ddp", 2);
  const Trace reference = train(rig);
  expect_same_bits(reference, train(rig));
  rig.seed += 1;
  EXPECT_NE(reference.losses, train(rig).losses);
}

TEST(Laws, SgdObeysTheSameLaws) {
  Rig one = rig_for("single", 1), many = rig_for("ddp", 3);
  one.optim.name = many.optim.name = "sgd";
  one.optim.lr = many.optim.lr = 0.05;
  EXPECT_LT(difference(train(one).losses, train(many).losses), 1e-6);
}

}  // namespace
}  // namespace syncopate::test
