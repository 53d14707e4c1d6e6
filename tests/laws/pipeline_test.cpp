// A model in stages trains to what one worker makes of the same micro-batches.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <tuple>

#include "syncopate/base/error.h"
#include "tests/laws/family_rig.h"
#include "tests/laws/rig.h"
#include "tests/support/rounding.h"
#include "tests/support/support.h"
#include "tests/support/tasks.h"

namespace syncopate::test {
namespace {

constexpr int64_t kMicroBatches = 3;

class Pipeline : public testing::Test {
 protected:
  spec::RunSpec spec_of(const std::string& task) const {
    spec::RunSpec spec;
    if (task == "mlm" || task == "clm") spec = small_spec(task, small_corpus(folder_ / "corpus"));
    if (task == "squad") spec = small_spec(task, small_squad(folder_ / "squad"));
    if (task == "csv") spec = small_spec(task, small_table(folder_ / "table"));
    if (task == "idx") {
      spec = small_spec("idx", small_idx(folder_ / "idx"));
      spec.optim.name = "sgd";
      spec.optim.lr = 0.02;
    }
    spec.train.steps = 20;
    return spec;
  }

  /// One worker that takes the micro-batches one after the other.
  static FamilyTrace alone(spec::RunSpec spec) {
    spec.train.accumulate *= kMicroBatches;
    return train(with_workers(spec, 1));
  }

  static FamilyRun staged(spec::RunSpec spec, int stages, int replicas = 1,
                          const std::string& strategy = "ddp") {
    spec.pipeline.stages = stages;
    spec.pipeline.micro_batches = kMicroBatches;
    spec.comm.workers = stages * replicas;
    spec.strategy.name = replicas == 1 ? "single" : strategy;
    return {.spec = spec};
  }

  TempDir folder_;
};

TEST_F(Pipeline, StagesAreOneWorkerBitForBit) {
  for (const char* task : {"csv", "squad", "idx"}) {
    const spec::RunSpec spec = spec_of(task);
    const FamilyTrace one = alone(spec);
    EXPECT_LT(one.losses.back(), one.losses.front()) << "it learns something";
    for (const char* schedule : {"1f1b", "gpipe"}) {
      FamilyRun two = staged(spec, 2);
      two.spec.pipeline.schedule = schedule;
      const FamilyTrace cut = train(two);
      EXPECT_EQ(one.losses, cut.losses) << task << " " << schedule;
      EXPECT_TRUE(at::equal(one.whole, cut.whole)) << task << " " << schedule;
      EXPECT_EQ(one.start_hash, cut.start_hash);
      EXPECT_EQ(one.eval.loss, cut.eval.loss);
      EXPECT_EQ(one.eval.measures, cut.eval.measures);
    }
    spec::RunSpec foil = spec;
    foil.train.seed += 1;
    EXPECT_GT(difference(one.losses, train(staged(foil, 2)).losses), 1e-3) << task;
  }
}

TEST_F(Pipeline, TiedTablesAreSummed) {
  for (const char* task : {"clm", "mlm"}) {
    const spec::RunSpec spec = spec_of(task);
    const FamilyTrace one = alone(spec);
    const FamilyTrace cut = train(staged(spec, 2));
    EXPECT_LT(difference(one.losses, cut.losses), 1e-6) << task;
    EXPECT_LT(difference(one.whole, cut.whole), 1e-5) << task;
    EXPECT_NEAR(one.eval.loss, cut.eval.loss, 1e-5) << task;
    FamilyRun gpipe = staged(spec, 2);
    gpipe.spec.pipeline.schedule = "gpipe";
    EXPECT_EQ(train(gpipe).losses, cut.losses) << "the schedule changes no bit";
  }
}

TEST_F(Pipeline, StagesInBf16AreOneWorkerBitForBit) {
  spec::RunSpec spec = spec_of("squad");
  spec.train.steps = 3;
  FamilyRun one = with_workers(spec, 1), two = staged(spec, 2);
  one.spec.train.accumulate *= kMicroBatches;
  const FamilyTrace whole = train(one);
  one.precision = two.precision = tensor::Precision::kBf16;
  const FamilyTrace half = train(one), cut = train(two);
  EXPECT_EQ(half.losses, cut.losses);
  EXPECT_TRUE(at::equal(half.whole, cut.whole));
  EXPECT_EQ(half.eval.loss, cut.eval.loss);
  EXPECT_NE(half.losses, whole.losses) << "the foil: in fp32";
  EXPECT_LT(difference(whole.losses, half.losses), 0.02);
}

TEST_F(Pipeline, ThreeAndFourStages) {
  spec::RunSpec spec = spec_of("csv");
  spec.model.name = "bert-mini";
  spec.train.steps = 8;
  const FamilyTrace one = alone(spec);
  for (const auto& [stages, cut] : {std::pair{3, "1,2,1"}, {4, ""}, {2, "3,1"}}) {
    FamilyRun run = staged(spec, stages);
    run.spec.pipeline.cut = cut;
    const FamilyTrace many = train(run);
    EXPECT_EQ(one.losses, many.losses) << stages;
    EXPECT_TRUE(at::equal(one.whole, many.whole)) << stages;
  }
  FamilyRun many = staged(spec, 5);
  EXPECT_THROW(train(many), ConfigError);
}

TEST_F(Pipeline, ReplicasOfStagesAreOneWorker) {
  spec::RunSpec spec = spec_of("csv");
  spec.optim.clip = 0.05;  // in every step, by the norm of all stages together
  const FamilyTrace one = train(with_workers(spec, 1));
  for (const char* strategy : {"ddp", "all-reduce", "gather-scatter"}) {
    const FamilyTrace many = train(staged(spec, 2, 2, strategy));
    EXPECT_LT(difference(one.losses, many.losses), 1e-6) << strategy;
    EXPECT_LT(difference(one.whole, many.whole), 1e-5) << strategy;
    EXPECT_TRUE(at::equal(many.parameters[0], many.parameters[2])) << "replicas of the first stage";
  }
  FamilyRun together = staged(spec, 2, 2, "ddp");  // the replicas of a stage, in one memory
  const FamilyTrace apart = train(together);
  together.spec.strategy.share_update = true;
  const FamilyTrace shared = train(together);
  EXPECT_TRUE(shared.shared);
  EXPECT_FALSE(apart.shared);
  EXPECT_EQ(shared.losses, apart.losses);
  EXPECT_TRUE(at::equal(shared.whole, apart.whole));
  FamilyRun crossed = staged(spec, 2, 2);
  crossed.spec.pipeline.layout = "3,0/1,2";
  const FamilyTrace other = train(crossed);
  EXPECT_LT(difference(one.losses, other.losses), 1e-6);
  EXPECT_LT(difference(one.whole, other.whole), 1e-5);
  spec.optim.clip = 0;
  EXPECT_GT(difference(one.losses, train(staged(spec, 2, 2)).losses), 1e-3) << "clipping changes the run";
}

TEST_F(Pipeline, BatchNormsOverAllReplicasOfAStage) {
  spec::RunSpec spec = spec_of("idx");
  spec.train.steps = 6;
  spec.model.batch_norm = "sync";
  const FamilyTrace whole = train(with_workers(spec, 2, "ddp"));
  FamilyRun run = staged(spec, 2, 2);
  run.spec.pipeline.micro_batches = 1;
  const FamilyTrace many = train(run);
  EXPECT_LT(difference(whole.losses, many.losses), 1e-5);
  EXPECT_LT(difference(whole.whole, many.whole), 1e-4);
  run.spec.model.batch_norm = "local";
  EXPECT_GT(difference(whole.losses, train(run).losses), 1e-3);
}

TEST_F(Pipeline, StagesWithoutALossMakeLocalStepsToo) {
  spec::RunSpec spec = spec_of("csv");
  spec.strategy.every = 4;
  spec.train.global_batch = 12;
  for (const char* strategy : {"local-sgd", "diloco"}) {
    const FamilyTrace whole = train(with_workers(spec, 2, strategy));
    const FamilyTrace many = train(staged(spec, 2, 2, strategy));
    EXPECT_LT(difference(whole.losses, many.losses), 1e-6) << strategy;
    EXPECT_LT(difference(whole.whole, many.whole), 1e-5) << strategy;
  }
  EXPECT_GT(difference(train(with_workers(spec, 2, "local-sgd")).losses, train(staged(spec, 2, 2)).losses),
            1e-4);
}

TEST_F(Pipeline, ResumesBitForBit) {
  for (const char* task : {"csv", "clm"}) {
    spec::RunSpec spec = spec_of(task);
    const FamilyTrace through = train(staged(spec, 2, 2));
    FamilyRun stopped = staged(spec, 2, 2);
    stopped.checkpoint = folder_ / (std::string(task) + ".safetensors");
    stopped.stop_after = 9;
    const FamilyTrace before = train(stopped);
    ASSERT_LT(before.losses.size(), through.losses.size());
    stopped.stop_after = 0;
    stopped.resume = true;
    const FamilyTrace after = train(stopped);
    EXPECT_TRUE(at::equal(after.whole, through.whole)) << task;
    EXPECT_FALSE(at::equal(before.whole, through.whole)) << task;
    EXPECT_EQ(after.eval.loss, through.eval.loss) << task;
  }
}

TEST_F(Pipeline, FirstVisitsAreUncompressedAndUnchangedExamplesCostNothing) {
  spec::RunSpec spec = spec_of("csv");
  spec.model.dropout = 0;
  spec.optim.lr = 0;  // examples come back as they were
  spec.optim.weight_decay = 0;
  const auto with = [&](const std::string& codec, int bits) {
    FamilyRun run = staged(spec, 2);
    run.spec.activation.codec = codec;
    run.spec.activation.forward_bits = run.spec.activation.backward_bits = bits;
    return train(run).losses;
  };
  const std::vector<double> plain = with("none", 4);
  EXPECT_LE(difference(with("ac-sgd", 1), plain), products_round_by_rows() ? 1e-6 : 0);
  EXPECT_GT(difference(with("direct", 1), plain), 1e-4);
  spec.optim.lr = 1e-3;
  const std::vector<double> learning = with("none", 4), changing = with("ac-sgd", 1);
  EXPECT_EQ(changing.front(), learning.front());
  EXPECT_GT(difference(changing, learning), 1e-4) << "changes in one bit, and gradients too";
}

TEST_F(Pipeline, BothEndsOfACutRememberTheSame) {
  spec::RunSpec spec = spec_of("csv");
  for (const auto& [rounding, buffer, store] : {std::tuple{"nearest", "memory", "fp32"},
                                                {"stochastic", "file", "fp16"},
                                                {"nearest", "memory", "int8"}}) {
    FamilyRun run = staged(spec, 2, 2);
    run.spec.activation = {.codec = "ac-sgd",
                           .forward_bits = 2,
                           .backward_bits = 6,
                           .rounding = rounding,
                           .first_visit = "full",
                           .buffer = buffer,
                           .store = store,
                           .buffer_gib = 1,
                           .eval = "plain"};
    run.checkpoint = folder_ / (std::string(store) + ".safetensors");
    run.buffers = folder_ / "buffers";
    const auto expect_equal_ends = [&](const FamilyTrace& trace) {
      for (const size_t first : {0, 2}) {
        const auto& sender = trace.remembered[first];
        const auto& receiver = trace.remembered[first + 1];
        ASSERT_EQ(sender.size(), receiver.size());
        for (size_t step = 0; step < sender.size(); ++step)
          EXPECT_EQ(sender[step].second, receiver[step].first);
        EXPECT_NE(sender.front().second, sender.back().second) << "they learn";
      }
      EXPECT_NE(trace.remembered[0].back().second, trace.remembered[2].back().second) << "replicas differ";
    };
    const FamilyTrace through = train(run);
    expect_equal_ends(through);
    run.checkpoint = folder_ / (std::string(store) + "-stopped.safetensors");
    run.stop_after = 11;  // in the second epoch
    expect_equal_ends(train(run));
    run.stop_after = 0;
    run.resume = true;
    const FamilyTrace resumed = train(run);
    expect_equal_ends(resumed);
    EXPECT_TRUE(at::equal(resumed.whole, through.whole)) << store;
    EXPECT_EQ(resumed.remembered[0].back(), through.remembered[0].back());
  }
}

TEST_F(Pipeline, RecomputedStagesAreTheSame) {
  const spec::RunSpec spec = spec_of("csv");
  FamilyRun run = staged(spec, 2);
  const FamilyTrace kept = train(run);
  run.spec.compute.recompute = true;
  const FamilyTrace again = train(run);
  EXPECT_EQ(kept.losses, again.losses);
  EXPECT_TRUE(at::equal(kept.whole, again.whole));
}

}  // namespace
}  // namespace syncopate::test
