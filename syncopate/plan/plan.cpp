#include "syncopate/plan/plan.h"

#include <set>

#include "syncopate/plan/choose.h"
#include "syncopate/plan/play.h"

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
  plan.played_out_s = played_out(request, plan.shape, plan.problem, plan.layout);
  price(plan);
  return plan;
}

}  // namespace syncopate::plan
