#include "syncopate/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "syncopate/plan/choose.h"
#include "syncopate/sim/predict.h"

namespace syncopate::plan {
namespace {

constexpr int kRandomLayouts = 2000;
constexpr int kShuffles = 100;

std::vector<Traffic> traffic_of(const Plan& plan) {
  std::vector<Traffic> all;
  const Problem& problem = plan.problem;
  for (int stage = 0; stage < problem.stages; ++stage) {
    for (int replica = 0; replica < problem.replicas; ++replica) {
      const int here = plan.layout.at(stage, replica);
      if (stage + 1 < problem.stages) {
        const double bytes = problem.cut_gb[static_cast<size_t>(stage)] * 1e9 * problem.micro_batches;
        const int next = plan.layout.at(stage + 1, replica);
        all.push_back({here, next, bytes * problem.forward.bits / 32});
        all.push_back({next, here, bytes * problem.backward.bits / 32});
      }
      for (int other = 0; other < problem.replicas; ++other) {
        if (other == replica) continue;
        // A shard to its owner, and the owner's sum back.
        const double bytes =
            problem.gradient_gb[static_cast<size_t>(stage)] * 1e9 * problem.gradient.bits / 32;
        all.push_back({here, plan.layout.at(stage, other), 2 * bytes / problem.replicas, true});
      }
    }
  }
  return all;
}

/// What `train --placement` would be told (plan/placement_file.h), ranks in the order of stages.
spec::RunSpec spec_of(const Plan& plan) {
  const Problem& problem = plan.problem;
  spec::RunSpec spec;
  spec.complete();
  spec.comm.workers = plan.shape.stages * plan.shape.replicas;
  spec.train.global_batch = plan.request.job.global_batch;
  spec.pipeline.stages = plan.shape.stages;
  spec.pipeline.schedule = "gpipe";
  std::string layout, cut;
  for (int stage = 0, rank = 0; stage < plan.shape.stages; ++stage) {
    if (stage > 0) layout += "/", cut += ",";
    for (int replica = 0; replica < plan.shape.replicas; ++replica)
      layout += fmt::format("{}{}", replica > 0 ? "," : "", rank++);
    const auto s = static_cast<size_t>(stage);
    const int end = s + 1 < plan.split.size() ? plan.split[s + 1] : plan.request.job.depth();
    cut += fmt::format("{}", end - plan.split[s]);
  }
  if (plan.shape.stages == 1) {
    spec.train.accumulate = plan.shape.micro_batches;
  } else {
    spec.pipeline.micro_batches = plan.shape.micro_batches;
    spec.pipeline.layout = layout;
    spec.pipeline.cut = cut;
    const double bits = std::floor(problem.forward.bits);
    spec.activation.codec = bits > 16 ? "none" : bits > 8 ? "fp16" : "direct";
    if (bits <= 8) {
      spec.activation.forward_bits = std::llround(bits);
      spec.activation.backward_bits = std::llround(std::floor(problem.backward.bits));
    }
  }
  if (plan.shape.replicas > 1) spec.codec.name = problem.gradient.name;
  return spec;
}

/// The iteration event by event; 0 where no profile says what it is made of, or it would take long.
double played_out(const Plan& plan) {
  const Job& job = plan.request.job;
  if (!job.profile || job.global_batch == 0 || !plan.request.overlap) return 0;
  const double stages = plan.shape.stages, replicas = plan.shape.replicas;
  const double messages = 2 * replicas * ((stages - 1) * plan.shape.micro_batches + stages * (replicas - 1));
  constexpr double kMost = 100'000;
  if (messages > kMost) return 0;
  sim::Scene scene{.topology = plan.request.topology, .profile = *job.profile};
  scene.profile.layers = job.layers;
  if (scene.profile.parameters.empty())
    for (const sim::LayerProfile& layer : job.layers)
      scene.profile.parameters.push_back({.name = layer.name, .shape = {layer.parameters}});
  for (const int device : plan.layout.device) scene.seats.push_back(scene.topology.host_of(device));
  return sim::predict(spec_of(plan), scene).ms / 1e3;
}

void price(Plan& plan) {
  const Job& job = plan.request.job;
  if (job.epoch_examples <= 0 || job.global_batch <= 0) return;
  plan.epoch_s = job.epoch_examples / static_cast<double>(job.global_batch) * plan.cost.total_s;
  std::set<int> hosts;
  for (const int device : plan.layout.device) hosts.insert(plan.request.topology.host_of(device));
  for (const int host : hosts)
    plan.epoch_price +=
        plan.request.topology.hosts()[static_cast<size_t>(host)].price_hour * plan.epoch_s / 3600;
}

}  // namespace

Plan make_plan(const Request& request) {
  Plan plan{.request = request};
  const Choice choice = choose(request);
  plan.shape = choice.shape;
  plan.problem = choice.problem;
  plan.layout = choice.found.layout;
  plan.cost = choice.found.cost;
  plan.moves = choice.found.moves;
  plan.split = split_layers(request.job, plan.shape.stages);
  plan.memory = memory_of(request.job, plan.split, plan.shape.replicas, plan.shape.micro_batches);
  plan.traffic = traffic_of(plan);
  plan.random_s = random_cost(plan.problem, kRandomLayouts, request.effort.seed);
  plan.region_blind_s = region_blind_cost(plan.problem, request.topology, kShuffles, request.effort.seed);

  plan.fewest_devices = fewest_devices(request);
  if (request.job.profile || request.job.compute_s > 0) plan.one_device_s = one_device_cost(request);
  plan.played_out_s = played_out(plan);
  price(plan);
  return plan;
}

}  // namespace syncopate::plan
