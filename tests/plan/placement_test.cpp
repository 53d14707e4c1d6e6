#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/plan/choose.h"
#include "syncopate/plan/plan.h"
#include "syncopate/plan/room.h"

namespace syncopate::test {
namespace {

using namespace plan;

constexpr double kGb = 1e9;

network::Topology uniform(const std::vector<double>& memory_gib, const network::Link& link, int devices = 1) {
  std::vector<network::Host> hosts;
  for (const double gib : memory_gib)
    hosts.push_back({.name = fmt::format("h{}", hosts.size()),
                     .region = std::string("r"),
                     .devices = devices,
                     .memory_gib = gib});
  std::vector<network::Link> links(hosts.size() * hosts.size(), link);
  for (size_t host = 0; host < hosts.size(); ++host) links[host * (hosts.size() + 1)] = network::kMemory;
  return {"uniform", hosts, links};
}

constexpr network::Link kGigabit{.latency_ms = 1, .gbit = 1};

/// Layers of so many GB, weights, gradients and AdamW's moments together, and GB of activations per example.
sim::Profile profile_of(const std::vector<double>& layers_gb, double activation_gb) {
  sim::Profile profile{.model = std::string("m"), .optimizer = std::string("adamw")};
  profile.times = {{.batch = 1, .forward_s = 0.1, .backward_s = 0.2, .update_s = 0.01},
                   {.batch = 8, .forward_s = 0.8, .backward_s = 1.6, .update_s = 0.01}};
  for (const double gb : layers_gb) {
    profile.layers.push_back({.name = fmt::format("{}", profile.layers.size()),
                              .share = 1.0 / static_cast<double>(layers_gb.size()),
                              .parameters = static_cast<int64_t>(gb * kGb / 16),
                              .output_bytes = 1e5,
                              .activation_bytes = activation_gb * kGb});
  }
  return profile;
}

Request request_of(network::Topology topology, Job job, std::optional<int> stages = {},
                   std::optional<int> replicas = {}) {
  return {.topology = std::move(topology),
          .job = std::move(job),
          .stages = stages,
          .replicas = replicas,
          .effort = {.share = 0.02}};
}

std::string complaint(const Request& request) {
  try {
    make_plan(request);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

TEST(Placement, GivesLargeStagesToRoomyDevices) {
  const Job job = job_from_profile(profile_of({32, 0.5}, 0), 8);
  EXPECT_EQ(make_plan(request_of(uniform({40, 4}, kGigabit), job, 2, 1)).layout.device,
            (std::vector<int>{0, 1}));
  EXPECT_EQ(make_plan(request_of(uniform({4, 40}, kGigabit), job, 2, 1)).layout.device,
            (std::vector<int>{1, 0}));
  expect_words(complaint(request_of(uniform({4, 4}, kGigabit), job, 2, 1)),
               {"2 stages x 1 replica: 1 device needs 32", "and 0 have as much"});
  expect_words(complaint(request_of(uniform({40, 0.4}, kGigabit), job, 2, 1)),
               {"2 devices need 500 MB or more, and 1 has as much"});
}

TEST(Placement, EqualsBruteForceWhereMemoryDecides) {
  double gained = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Rng rng(mix_key(seed, 5));
    std::vector<network::Host> hosts;
    std::vector<network::Link> links(36);
    for (int k = 0; k < 6; ++k) {
      hosts.push_back({.name = fmt::format("h{}", k),
                       .region = std::string("r"),
                       .speed = 0.5 + rng.uniform(),
                       .memory_gib = k < 3 ? 4.0 : 20.0});
      for (int other = 0; other < 6; ++other)
        links[static_cast<size_t>(6 * k + other)] = {.latency_ms = 50 * rng.uniform(),
                                                     .gbit = 0.05 + rng.uniform()};
    }
    Request request =
        request_of({"mixed", hosts, links}, job_from_profile(profile_of({16, 1, 2}, 0), 8), 3, 2);
    request.micro_batches = 2;
    const Choice choice = choose(request);
    const Room room{.needs = {16 * kGb, 1 * kGb, 2 * kGb}, .has = device_memory(request)};
    Layout layout{3, 2, {0, 1, 2, 3, 4, 5}};
    double least = std::numeric_limits<double>::infinity(), free = least;
    do {
      const double cost = evaluate(choice.problem, layout).total_s;
      free = std::min(free, cost);
      bool held = true;
      for (int place = 0; place < 6; ++place)
        held = held && room.holds(layout.device[static_cast<size_t>(place)], place / 2);
      if (held) least = std::min(least, cost);
    } while (std::next_permutation(layout.device.begin(), layout.device.end()));
    EXPECT_NEAR(choice.found.cost.total_s, least, 1e-6 * least) << seed;
    for (int place = 0; place < 6; ++place)
      EXPECT_TRUE(room.holds(choice.found.layout.device[static_cast<size_t>(place)], place / 2)) << seed;
    gained = std::max(gained, least / free - 1);
  }
  EXPECT_GT(gained, 0.01) << "memory that decides nothing";
}

TEST(Placement, CountsTheFewestDevicesWithTheWholeBatch) {
  // A layer takes 16 GB of 21.5, and 0.3 for an example: 32 are too many for a device, 16 are not.
  const Job job = job_from_profile(profile_of({16, 16, 16, 16}, 0.3), 64);
  const auto of = [&](int hosts) {
    return request_of(uniform(std::vector<double>(static_cast<size_t>(hosts), 20), kGigabit), job);
  };
  EXPECT_EQ(fewest_devices(of(64)), 16);
  EXPECT_EQ(fewest_devices(of(15)), 0);
  EXPECT_NO_THROW(choose(of(16)));
  expect_words(complaint(of(4)), {"fits on no devices", "4 stages x 1 replica: 4 devices need 35.2 GB",
                                  "and 0 have as much", "a smaller batch"});
  Request smaller = of(4);
  smaller.job.global_batch = 16;
  EXPECT_EQ(fewest_devices(smaller), 4);
}

TEST(Placement, AdvisesAShapeThatFits) {
  const auto said = [](const Job& job, int stages, int replicas) {
    return complaint(request_of(uniform({20, 20, 20, 20}, kGigabit), job, stages, replicas));
  };
  const Job heavy = job_from_profile(profile_of({16, 16, 16, 16}, 0), 8);
  expect_words(said(heavy, 2, 2), {"4 devices need 32 GB", "; 4 stages x 1 replica does"});
  EXPECT_EQ(said(heavy, 4, 1), "");
  // Activations of a pipeline are those of all its micro-batches; one stage keeps one of them.
  const Job wide = job_from_profile(profile_of({1, 1, 1, 1}, 4), 8);
  expect_words(said(wide, 4, 1), {"4 devices need 33 GB", "; 1 stage x 4 replicas does"});
  EXPECT_EQ(said(wide, 1, 4), "");
  Request uneven = request_of(uniform({20, 20, 20, 20}, kGigabit), heavy, 1, 3);
  uneven.micro_batches = 1;
  expect_words(complaint(uneven), {"a batch of 8 does not divide among 3 replicas of 1 micro-batch;"});
}

TEST(Placement, RefusesMoreReplicasThanCanBePaired) {
  expect_words(complaint(request_of(uniform({0, 0}, kGigabit, 1028), job_from_figures(1, 1, 1, 2), 2, 1028)),
               {"1024 replicas at most, got 1028"});
}

TEST(Placement, OneNumberOfBitsForAllCutsAndTheMostThatAreAsFast) {
  const auto of = [](double gbit, double compute_s) {
    Request request =
        request_of(uniform({0, 0, 0, 0}, {.gbit = gbit}), job_from_figures(0.001, 0.1, compute_s, 4), 4, 1);
    request.micro_batches = 8;
    request.codings = codings({}, 4, 8, 8);
    return make_plan(request);
  };
  const auto bits = [](const Plan& plan) {
    const auto json = to_json(plan).at("bits");
    return std::pair{json.at("forward").get<int>(), json.at("backward").get<int>()};
  };
  // A wire of which a tenth would do, one that is always too slow, and one that is faster than packing.
  const Plan slow = of(0.01, 1), fast = of(1000, 1), packing = of(60, 0.001);
  EXPECT_EQ(bits(slow), (std::pair{4, 8}));
  EXPECT_EQ(bits(packing), (std::pair{32, 32}));
  EXPECT_EQ(bits(fast), (std::pair{32, 32}));
  EXPECT_NEAR(evaluate(slow.problem, slow.layout).total_s, slow.cost.total_s, 1e-12);
  Problem whole = slow.problem;
  whole.forward = whole.backward = {};
  EXPECT_GT(evaluate(whole, slow.layout).total_s, 3 * slow.cost.total_s);
  // Codecs of more than eight bits have the same number both ways.
  for (const auto& [forward, backward] : codings({}, 4, 16, 8).activations)
    EXPECT_EQ(forward.bits, backward.bits);
  EXPECT_EQ(codings({}, 2, 6, 8).fewest().forward.name, "int4");
}

TEST(Placement, FullIsThePublishedCostOnlyWhereBothDirectionsAreAlike) {
  const auto ratio = [](double gbit, double back) {
    std::vector<network::Link> links(4, network::kMemory);
    links[1].gbit = gbit;
    links[2].gbit = back;
    const network::Topology two("two",
                                {{.name = std::string("a"), .region = std::string("r")},
                                 {.name = std::string("b"), .region = std::string("r")}},
                                links);
    const Job job = job_from_figures(1, 1, 0, 2);
    const auto cost = [&](const Pairs& pairs, const Shape& shape) {
      return evaluate(make_problem(job, pairs, {1, 1}, shape, {}, true),
                      {shape.stages, shape.replicas, {0, 1}})
          .total_s;
    };
    const double pipeline = cost(directed_pairs(two), {2, 1, 1}) / cost(symmetric_pairs(two), {2, 1, 1});
    EXPECT_NEAR(pipeline, cost(directed_pairs(two), {1, 2, 1}) / cost(symmetric_pairs(two), {1, 2, 1}), 1e-9);
    return pipeline;
  };
  EXPECT_NEAR(ratio(1, 1), 1, 1e-9);
  EXPECT_NEAR(ratio(1, 0.1), (1 + 10) * 0.55 / 2, 1e-9);
}

TEST(Placement, PlaysTheIterationOutAsTheClosedFormSays) {
  // Transfers that are long against latencies, and no links that devices share: 5 %, of which 3.5 are
  // headers.
  sim::Profile profile = profile_of({0.02, 0.02, 0.02, 0.02}, 0);
  for (sim::BatchTime& time : profile.times) {
    time.forward_s /= 10;
    time.backward_s /= 10;
  }
  for (sim::LayerProfile& layer : profile.layers) layer.output_bytes = 2e5;
  const auto of = [&](int devices, int stages, int replicas, int gradient_bits = 32) {
    const std::vector<double> hosts(static_cast<size_t>(stages * replicas / devices), 0);
    Request request =
        request_of(uniform(hosts, kGigabit, devices), job_from_profile(profile, 32), stages, replicas);
    request.micro_batches = 4;
    request.codings = codings(profile, 32, 32, gradient_bits);
    return make_plan(request);
  };
  for (const auto& [stages, replicas] : {std::pair{1, 1}, {4, 1}, {2, 2}, {1, 2}}) {
    const Plan plan = of(1, stages, replicas);
    EXPECT_NEAR(plan.played_out_s, plan.cost.total_s, 0.05 * plan.cost.total_s)
        << stages << " x " << replicas;
    expect_words(to_text(plan), {"played out"});
    EXPECT_GT(to_json(plan).at("played_out_s").get<double>(), 0);
  }
  // What the closed form does not know: the devices of two hosts share a link, which coded sums cross from
  // everybody to everybody, and plain ones, in two levels, only once per host.
  const Plan levels = of(4, 1, 8), shared = of(4, 1, 8, 8);
  EXPECT_NEAR(levels.played_out_s, levels.cost.total_s, 0.05 * levels.cost.total_s);
  EXPECT_GT(shared.played_out_s, 1.2 * shared.cost.total_s);
  Request silent = request_of(uniform({0, 0}, kGigabit), job_from_figures(1, 1, 1, 2), 2, 1);
  EXPECT_EQ(make_plan(silent).played_out_s, 0) << "no profile";
  EXPECT_TRUE(to_json(make_plan(silent)).at("played_out_s").is_null());
}

TEST(Placement, ChoosesWhatIsFastestPlayedOut) {
  // Long trips: sums of several buckets make more of them than the closed form counts.
  sim::Profile profile = profile_of({0.4, 0.4, 0.4, 0.4}, 0);
  for (int64_t k = 0; k < 16; ++k)
    profile.parameters.push_back({.name = fmt::format("w{}", k), .shape = {6'250'000}});
  const network::Link far{.latency_ms = 150, .gbit = 10};
  const auto plan_of = [&](std::optional<int> stages, std::optional<int> replicas, std::optional<int> parts) {
    Request request = request_of(uniform({0, 0, 0, 0}, far), job_from_profile(profile, 16), stages, replicas);
    request.micro_batches = parts;
    request.codings = codings(profile, 4, 8, 32);
    return make_plan(request);
  };
  const Plan chosen = plan_of({}, {}, {});
  std::optional<Plan> closed;  // the fastest by the closed form
  for (int stages = 1; stages <= 4; ++stages) {
    for (int replicas = 1; stages * replicas <= 4; ++replicas) {
      if (16 % replicas != 0) continue;
      for (int parts = 1; parts * replicas <= 16; parts *= 2) {
        const Plan plan = plan_of(stages, replicas, parts);
        EXPECT_LE(chosen.played_out_s, 1.002 * plan.played_out_s)
            << stages << " x " << replicas << ", " << parts << " micro-batches";
        if (!closed || plan.cost.total_s < closed->cost.total_s) closed = plan;
      }
    }
  }
  EXPECT_GT(closed->played_out_s, 1.02 * chosen.played_out_s) << "the closed form chooses as well";
}

TEST(Placement, WritesSevenDigits) {
  const Plan plan = make_plan(request_of(uniform({0, 0, 0}, {.latency_ms = 1.0 / 3, .gbit = 1.0 / 7}),
                                         job_from_profile(profile_of({0.1, 0.1, 0.1}, 0), 9), 3, 1));
  const auto json = to_json(plan);
  for (const char* key : {"cost_s", "pipeline_s", "compute_s", "random_s", "region_blind_s", "epoch_s"}) {
    std::string digits = json.at(key).dump();
    std::erase(digits, '.');
    EXPECT_LE(digits.size(), 12U) << key << " " << json.at(key).dump();
  }
  EXPECT_NEAR(json.at("cost_s").get<double>(), plan.cost.total_s, 1e-6 * plan.cost.total_s);
}

}  // namespace
}  // namespace syncopate::test
