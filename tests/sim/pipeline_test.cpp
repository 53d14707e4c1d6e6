#include "syncopate/sim/pipeline.h"

#include <gtest/gtest.h>

#include "syncopate/base/error.h"

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

/// Four equal layers: 10 ms forward and 20 ms backward for an example.
Profile four_layers() {
  Profile profile;
  profile.times = {{.batch = 1, .forward_s = 0.04, .backward_s = 0.08}};
  profile.parameters = {{.name = "w", .shape = {400, 100}}};
  for (int i = 0; i < 4; ++i)
    profile.layers.push_back(
        {.name = "l", .share = 0.25, .parameters = 10000, .output_bytes = 1e5, .activation_bytes = 100});
  return profile;
}

TEST(Pipeline, WithoutANetworkIsTheBubbleFormula) {
  const Pipeline plan{.stages = {{0}, {1}, {2}, {3}}, .micro_batches = 8};
  const auto free = predict_pipeline(plan, four_layers(), devices(4, 0, 1e6));
  EXPECT_NEAR(free.iteration_s, (8 + 4 - 1) * 0.030, 1e-4);  // (M + P - 1)(f + b)
  EXPECT_NEAR(free.compute_s, 8 * 0.030, 1e-9);
  Pipeline gpipe = plan;
  gpipe.gpipe = true;
  EXPECT_NEAR(predict_pipeline(gpipe, four_layers(), devices(4, 0, 1e6)).iteration_s, 0.33, 1e-4);
  // It differs in what it keeps.
  EXPECT_GT(predict_pipeline(gpipe, four_layers(), devices(4, 0, 1e6)).memory[0], free.memory[0]);
  EXPECT_GT(predict_pipeline(plan, four_layers(), devices(4, 50, 1e6)).iteration_s, free.iteration_s + 0.25);
}

TEST(Pipeline, SumsOverReplicasComeBehind) {
  const Pipeline alone{.stages = {{0}, {1}}, .micro_batches = 4};
  const Pipeline twice{.stages = {{0, 1}, {2, 3}}, .micro_batches = 4};
  const auto one = predict_pipeline(alone, four_layers(), devices(4, 10, 0.01));
  const auto two = predict_pipeline(twice, four_layers(), devices(4, 10, 0.01));
  EXPECT_EQ(one.data_parallel_s, 0);
  // Two rounds of half of 20,000 gradients, each after a round trip.
  const double rate = 0.01e9 / 8 * network::kPayloadShare;
  EXPECT_NEAR(two.data_parallel_s, 2 * (0.02 + 40000 / rate), 1e-3);
  Pipeline eight_bits = twice;
  eight_bits.gradient_bits = 8;
  EXPECT_LT(predict_pipeline(eight_bits, four_layers(), devices(4, 10, 0.01)).data_parallel_s,
            0.6 * two.data_parallel_s);
}

TEST(Pipeline, BalancesLayersByTheirTime) {
  Profile profile = four_layers();
  EXPECT_EQ(balanced_layers(profile.layers, 2), (std::vector<size_t>{2, 2}));
  profile.layers[0].share = 0.7;
  for (int i = 1; i < 4; ++i) profile.layers[static_cast<size_t>(i)].share = 0.1;
  EXPECT_EQ(balanced_layers(profile.layers, 2), (std::vector<size_t>{1, 3}));
  EXPECT_THROW(balanced_layers(profile.layers, 5), ConfigError);
}

TEST(Pipeline, ManyDevicesTakeFewEvents) {
  Pipeline plan{.micro_batches = 16};
  for (int stage = 0; stage < 4; ++stage) {
    plan.stages.emplace_back();
    for (int replica = 0; replica < 64; ++replica) plan.stages.back().push_back(stage * 64 + replica);
  }
  EXPECT_LT(predict_pipeline(plan, four_layers(), devices(256, 5, 1)).events, 300'000);
}

TEST(Pipeline, RefusesWhatCannotBe) {
  const auto refused = [](const Pipeline& plan) {
    EXPECT_THROW(predict_pipeline(plan, four_layers(), devices(4, 1, 1)), ConfigError);
  };
  refused({});
  refused({.stages = {{0, 1}, {2}}});
  refused({.stages = {{0}, {0}}});
  refused({.stages = {{0}, {7}}});
  refused({.stages = {{0}, {1}}, .layers = {1, 1}});
  refused({.stages = {{0}}, .micro_batches = 0});
}

}  // namespace
}  // namespace syncopate::sim
