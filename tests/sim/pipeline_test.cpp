#include <gtest/gtest.h>

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/sim/engine.h"
#include "syncopate/sim/predict.h"
#include "syncopate/sim/stages.h"

namespace syncopate::sim {
namespace {

network::Topology devices(int count, double latency_ms, double gbit) {
  std::vector<network::Host> hosts;
  for (int host = 0; host < count; ++host)
    hosts.push_back({.name = std::to_string(host), .region = std::string("r"), .devices = 1});
  const network::Link link{.latency_ms = latency_ms, .gbit = gbit};
  return network::Topology(
      "test", hosts,
      std::vector<network::Link>(static_cast<size_t>(count) * static_cast<size_t>(count), link));
}

/// Four equal blocks: 10 ms forward and 20 ms backward for an example, 250 rows of 100 channels between them.
Profile four_blocks() {
  Profile profile;
  profile.cores = 2;
  profile.times = {{.batch = 1, .forward_s = 0.04, .backward_s = 0.08}};
  for (int i = 0; i < 4; ++i) {
    profile.layers.push_back({.name = "l",
                              .share = 0.25,
                              .parameters = 10000,
                              .output_bytes = 1e5,
                              .channels = 100,
                              .activation_bytes = 100});
    profile.parameters.push_back({.name = "w", .shape = {100, 100}, .layer = 3 - i});
  }
  return profile;
}

spec::RunSpec staged(int64_t stages, int64_t replicas, int64_t micro_batches) {
  spec::RunSpec spec;
  spec.comm.workers = stages * replicas;
  spec.pipeline.stages = stages;
  spec.pipeline.micro_batches = micro_batches;
  spec.train.global_batch = replicas * micro_batches;
  spec.optim.clip = 0;
  spec.compute.threads = 1;
  spec.complete();
  return spec;
}

Scene stage_scene(int64_t ranks, double latency_ms, double gbit) {
  std::vector<int> seats;
  for (int rank = 0; rank < ranks; ++rank) seats.push_back(rank);
  return {.topology = devices(static_cast<int>(ranks), latency_ms, gbit),
          .seats = seats,
          .profile = four_blocks()};
}

constexpr double kNoWire = 1e6;  // Gbit/s
double rate(double gbit) { return gbit * 1e9 / 8 * network::kPayloadShare; }

TEST(Stages, WithoutANetworkAreTheBubbleFormula) {
  spec::RunSpec spec = staged(4, 1, 8);
  EXPECT_NEAR(predict(spec, stage_scene(4, 0, kNoWire)).ms, (8 + 4 - 1) * 30, 0.1);  // (M + P - 1)(f + b)
  EXPECT_NEAR(predict(spec, stage_scene(4, 0, kNoWire)).compute_ms, 8 * 30, 1e-6);
  const double one_ahead = predict(spec, stage_scene(4, 20, kNoWire)).ms,
               kept = predict(spec, stage_scene(4, 0, 1)).memory;
  spec.pipeline.schedule = "gpipe";
  EXPECT_NEAR(predict(spec, stage_scene(4, 0, kNoWire)).ms, 330, 0.1);
  // Where messages take long, a stage that runs further ahead waits less; it keeps more.
  EXPECT_LT(predict(spec, stage_scene(4, 20, kNoWire)).ms, one_ahead - 20);
  EXPECT_GT(predict(spec, stage_scene(4, 0, 1)).memory, kept);
}

TEST(Stages, AMessageIsOneTrip) {
  // Two stages, one micro-batch: forward, a trip, forward and backward, a trip, backward. Between steps the
  // second stage's notices travel, while the first one computes.
  const double latency = 5, wire = 1e3 * (1e5 + 48) / rate(0.1);
  EXPECT_NEAR(predict(staged(2, 1, 1), stage_scene(2, latency, 0.1)).ms, 120 + 2 * (latency + wire), 0.2);
  EXPECT_GT(predict(staged(2, 1, 1), stage_scene(2, 2 * latency, 0.1)).ms,
            120 + 2 * (latency + wire) + 9);  // foil
}

TEST(Stages, SendWhatTheCodecMakesOfRealRows) {
  const auto sent = [](const char* codec, double real_share) {
    spec::RunSpec spec = staged(2, 1, 4);
    spec.activation.codec = codec;
    spec.activation.forward_bits = 4;
    spec.activation.backward_bits = 8;
    Scene here = stage_scene(2, 1, 1);
    here.profile.real_share = real_share;
    return predict(spec, here).bytes_per_step;
  };
  const double totals = 32;
  EXPECT_NEAR(sent("none", 1), 4 * 1e5 + totals, 1);  // forward by one, back by the other
  EXPECT_NEAR(sent("none", 0.5), sent("none", 1), 1e-9) << "padding goes with it";
  EXPECT_NEAR(sent("fp16", 0.5), 4 * 0.5 * 5e4 + totals, 1);
  EXPECT_NEAR(sent("direct", 0.5), 4 * (0.5 * 25000 * (4 + 8) / 8 / 2 + 200) + totals, 1);
  EXPECT_EQ(sent("ac-sgd", 0.5), sent("direct", 0.5));
  EXPECT_LT(sent("direct", 0.5), 0.7 * sent("direct", 1));
}

TEST(Stages, TiedTablesGoToTheLastStageAndTheirGradientsBack) {
  spec::RunSpec spec = staged(2, 1, 2);
  Scene here = stage_scene(2, 1, 0.1);
  const Prediction without = predict(spec, here);
  here.profile.tied_bytes = 1e6;
  const Prediction with = predict(spec, here);
  EXPECT_NEAR(with.bytes_per_step - without.bytes_per_step, 1e6, 1);
  EXPECT_GT(with.ms, without.ms + 1e3 * 1e6 / rate(0.1)) << "both are waited for";
}

TEST(Stages, ClippingWaitsForTheNormOfAllStages) {
  spec::RunSpec spec = staged(2, 1, 2);
  const double without = predict(spec, stage_scene(2, 20, 1)).ms;
  spec.optim.clip = 1;
  EXPECT_GT(predict(spec, stage_scene(2, 20, 1)).ms, without + 19);
}

TEST(Stages, ReplicasSumTheirOwnStage) {
  // Each of four workers sends half of the activations or their gradients of one micro-batch stream, the
  // totals to three others, and all of its stage's gradient.
  spec::RunSpec spec = staged(2, 2, 4);
  const double activations = 4 * 1e5, totals = 3 * 32, gradients = 4 * 2 * 10000;
  EXPECT_NEAR(predict(spec, stage_scene(4, 1, 1)).bytes_per_step, activations + totals + gradients, 100);
  EXPECT_NEAR(predict(staged(4, 1, 4), stage_scene(4, 1, 1)).bytes_per_step, 2 * 3 * 4 * 1e5 / 4 + totals, 1)
      << "one replica sums nothing";
  spec.codec.name = "int8";
  const double eight_bits = predict(spec, stage_scene(4, 1, 1)).bytes_per_step;
  EXPECT_NEAR(eight_bits, activations + totals + gradients / 4, 0.02 * gradients);
  for (const char* strategy : {"ddp", "all-reduce", "gather-scatter", "local-sgd", "diloco"}) {
    spec.codec.name = "none";
    spec.strategy.name = strategy;
    spec.strategy.every = 4;
    const Prediction step = predict(spec, stage_scene(4, 1, 1));
    EXPECT_GT(step.ms, 150 - 1e-6) << strategy;
    EXPECT_NEAR(step.compute_ms + step.exchange_ms, step.ms, 1e-3) << strategy;
  }
}

TEST(Stages, AGroupOfRanksSumsAsIfItWereAlone) {
  const auto seconds = [](int ranks, const std::vector<int>& group) {
    const network::Topology topology = devices(ranks, 10, 0.1);
    std::vector<int> seats;
    for (int rank = 0; rank < ranks; ++rank) seats.push_back(rank);
    Engine engine(topology, seats, ranks, {});
    const int sum = engine.all_reduce(1e6, 4, group.empty() ? 0 : engine.group(group));
    double end = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const int actor = engine.actor(rank);
      if (!group.empty() && std::find(group.begin(), group.end(), rank) == group.end()) continue;
      engine.script(actor) = {{.kind = Action::Kind::kStart, .operation = sum},
                              {.kind = Action::Kind::kWait, .operation = sum},
                              {.kind = Action::Kind::kMark}};
    }
    engine.play();
    for (int rank = 0; rank < ranks; ++rank) {
      if (!engine.marks(rank).empty()) end = std::max(end, engine.marks(rank).back().at);
    }
    return end;
  };
  EXPECT_DOUBLE_EQ(seconds(5, {4, 1, 2}), seconds(3, {}));
  EXPECT_GT(seconds(5, {}), 1.1 * seconds(3, {}));
}

TEST(Stages, OfOneMachineShareItsCores) {
  const spec::RunSpec spec = staged(4, 1, 16);
  Scene here = stage_scene(4, 0, kNoWire);
  const double apart = predict(spec, here).ms;
  here.one_machine = true;
  const double together = predict(spec, here).ms;
  EXPECT_NEAR(apart, (16 + 4 - 1) * 30, 1);
  // Sixteen times four stages of 30 ms on two cores; filling and draining has not even two to do.
  EXPECT_GT(together, 16 * 4 * 30 / 2.0);
  EXPECT_LT(together, 1.25 * 16 * 4 * 30 / 2.0);
  here.profile.cores = 4;
  EXPECT_NEAR(predict(spec, here).ms, apart, 0.15 * apart);
}

TEST(Stages, AreCutAsToldOrEvenly) {
  spec::RunSpec spec = staged(2, 1, 8);
  const double even = predict(spec, stage_scene(2, 0, kNoWire)).ms;
  spec.pipeline.cut = "2,2";
  EXPECT_DOUBLE_EQ(predict(spec, stage_scene(2, 0, kNoWire)).ms, even);
  spec.pipeline.cut = "3,1";
  EXPECT_NEAR(predict(spec, stage_scene(2, 0, kNoWire)).ms, 8 * 90, 1) << "the slow stage's beat";
  spec.pipeline.cut = "3,2";
  EXPECT_THROW(predict(spec, stage_scene(2, 0, 1)), ConfigError);
  spec = staged(8, 1, 8);
  EXPECT_THROW(predict(spec, stage_scene(8, 0, 1)), ConfigError);
  Scene empty = stage_scene(2, 0, 1);
  empty.profile.layers.clear();
  EXPECT_THROW(predict(staged(2, 1, 8), empty), ConfigError);

  std::vector<LayerProfile> blocks = four_blocks().layers;
  EXPECT_EQ(balanced_layers(blocks, 2), (std::vector<size_t>{2, 2}));
  EXPECT_EQ(balanced_layers(blocks, 3), (std::vector<size_t>{2, 1, 1})) << "the last ones are lighter";
  blocks[0].share = 0.7;
  for (size_t i = 1; i < 4; ++i) blocks[i].share = 0.1;
  EXPECT_EQ(balanced_layers(blocks, 2), (std::vector<size_t>{1, 3}));
  EXPECT_THROW(balanced_layers(blocks, 5), ConfigError);
}

TEST(Stages, BucketsLeaveWithinTheLastBackwardPass) {
  // Gradients that are ready early in a stage's backward pass are on their way while the rest computes.
  spec::RunSpec spec = staged(2, 2, 2);
  Scene here = stage_scene(4, 1, 0.05);
  for (ParameterProfile& parameter : here.profile.parameters) parameter.shape = {1000, 300};
  const double hidden = predict(spec, here).ms;
  spec.strategy.overlap = false;
  EXPECT_GT(predict(spec, here).ms, hidden + 10);
}

}  // namespace
}  // namespace syncopate::sim
