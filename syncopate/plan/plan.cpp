#include "syncopate/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/base/text.h"
#include "syncopate/plan/choose.h"

namespace syncopate::plan {
namespace {

constexpr int kRandomLayouts = 2000;
constexpr int kShuffles = 100;

/// As much precision as leaves a cut as fast: what is not the slowest link has time to spare.
std::vector<std::vector<Coding>> relaxed(const Problem& problem, const Layout& layout, bool forward) {
  const std::vector<Coding>& choices = forward ? problem.forward : problem.backward;
  std::vector<std::vector<Coding>> all;
  for (int stage = 0; stage + 1 < problem.stages; ++stage) {
    const double gb = problem.cut_gb[static_cast<size_t>(stage)];
    const auto pair = [&](int replica) -> const Pair& {
      const int here = layout.at(stage, replica), next = layout.at(stage + 1, replica);
      return forward ? problem.pairs.at(here, next) : problem.pairs.at(next, here);
    };
    const auto through = [&](const Coding& coding, int replica) {
      return pair(replica).delay_s + busy_s(coding, gb, pair(replica).s_per_gb);
    };
    double slowest = 0, busiest = 0;
    for (int replica = 0; replica < problem.replicas; ++replica) {
      const Coding& coding = fastest(choices, pair(replica).s_per_gb);
      slowest = std::max(slowest, through(coding, replica));
      busiest = std::max(busiest, busy_s(coding, gb, pair(replica).s_per_gb));
    }
    all.emplace_back();
    for (int replica = 0; replica < problem.replicas; ++replica) {
      const Coding* most = &fastest(choices, pair(replica).s_per_gb);
      for (const Coding& coding : choices) {
        if (coding.bits > most->bits && through(coding, replica) <= slowest &&
            busy_s(coding, gb, pair(replica).s_per_gb) <= busiest)
          most = &coding;
      }
      all.back().push_back(*most);
    }
  }
  return all;
}

std::vector<Traffic> traffic_of(const Plan& plan) {
  std::vector<Traffic> all;
  const Problem& problem = plan.problem;
  for (int stage = 0; stage < problem.stages; ++stage) {
    for (int replica = 0; replica < problem.replicas; ++replica) {
      const int here = plan.layout.at(stage, replica);
      if (stage + 1 < problem.stages) {
        const auto s = static_cast<size_t>(stage), r = static_cast<size_t>(replica);
        const double bytes = problem.cut_gb[s] * 1e9 * problem.micro_batches;
        const int next = plan.layout.at(stage + 1, replica);
        all.push_back({here, next, bytes * plan.forward[s][r].bits / 32});
        all.push_back({next, here, bytes * plan.backward[s][r].bits / 32});
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

double fullest(const std::vector<Memory>& memory) {
  double most = 0;
  for (const Memory& each : memory) most = std::max(most, each.total());
  return most;
}

/// The fewest devices that hold a replica of the model, the roomiest first; 0 where memory is not known.
int fewest_devices(const Request& request, const std::vector<double>& memory) {
  if (std::any_of(memory.begin(), memory.end(), [](double each) { return each == 0; })) return 0;
  std::vector<double> sorted = memory;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const int most = std::min(request.job.depth(), static_cast<int>(sorted.size()));
  for (int devices = 1; devices <= most; ++devices) {
    const std::vector<int> split = split_layers(request.job, devices);
    const double room = sorted[static_cast<size_t>(devices - 1)];
    // With as small batches as there can be: in a pipeline they are cut by replicas only.
    const int finest = request.job.global_batch > 0 ? static_cast<int>(request.job.global_batch) : 1;
    if (fullest(memory_of(request.job, split, devices == 1 ? 1 : finest, devices == 1 ? finest : 1)) <= room)
      return devices;
  }
  return 0;
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
  plan.forward = relaxed(plan.problem, plan.layout, true);
  plan.backward = relaxed(plan.problem, plan.layout, false);
  plan.traffic = traffic_of(plan);
  plan.random_s = random_cost(plan.problem, kRandomLayouts, request.effort.seed);
  plan.region_blind_s = region_blind_cost(plan.problem, request.topology, kShuffles, request.effort.seed);

  const std::vector<double> memory = device_memory(request);
  plan.fewest_devices = fewest_devices(request, memory);
  plan.fits_one_device = plan.fewest_devices <= 1;
  if (request.job.profile || request.job.compute_s > 0) plan.one_device_s = one_device_cost(request);
  price(plan);
  return plan;
}

}  // namespace syncopate::plan
