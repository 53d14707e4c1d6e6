#include "syncopate/plan/problem.h"

#include <algorithm>

namespace syncopate::plan {
namespace {

template <typename Make>
Pairs pairs_by(const network::Topology& topology, const Make& make) {
  Pairs pairs(topology.devices());
  for (int from = 0; from < topology.devices(); ++from) {
    for (int to = 0; to < topology.devices(); ++to) {
      if (from != to)
        pairs.at(from, to) = make(topology.between_devices(from, to), topology.between_devices(to, from));
    }
  }
  return pairs;
}

constexpr double kBitsOfByte = 8;

struct Exchange {
  double exposed_s = 0, hidden_s = 0;
};

/// The gradient of one stage, behind the backward pass of the last micro-batch as far as it goes.
Exchange exchange_of(const Problem& problem, int stage, const Layout& layout, double backward_s) {
  const double gb = problem.gradient_gb[static_cast<size_t>(stage)];
  const double shard = gb * problem.gradient.bits / 32 / problem.replicas;
  double slowest = 0;
  for (int a = 0; a < problem.replicas; ++a) {
    double sum = 0;
    for (int b = 0; b < problem.replicas; ++b) {
      if (a == b) continue;
      const Pair& there = problem.pairs.at(layout.at(stage, a), layout.at(stage, b));
      const Pair& back = problem.pairs.at(layout.at(stage, b), layout.at(stage, a));
      sum += there.delay_s + back.delay_s + shard * (there.s_per_gb + back.s_per_gb);
    }
    slowest = std::max(slowest, sum);
  }
  if (problem.replicas > 1) slowest += gb * problem.gradient.s_per_gb;
  const double hidden = problem.overlap ? problem.hidden_share * std::min(slowest, backward_s) : 0;
  return {slowest - hidden, hidden};
}

}  // namespace

Pairs symmetric_pairs(const network::Topology& topology) {
  return pairs_by(topology, [](const network::Link& there, const network::Link& back) {
    return Pair{(there.latency_ms + back.latency_ms) / 2e3, kBitsOfByte / ((there.gbit + back.gbit) / 2)};
  });
}

Pairs directed_pairs(const network::Topology& topology) {
  return pairs_by(topology, [](const network::Link& there, const network::Link&) {
    return Pair{there.latency_ms / 1e3, kBitsOfByte / there.gbit};
  });
}

double busy_s(const Coding& coding, double gb, double s_per_gb) {
  return gb * (coding.bits / 32 * s_per_gb + coding.s_per_gb);
}

Cost evaluate(const Problem& problem, const Layout& layout) {
  Cost cost;
  double fill_s = 0, slowest_work = 0, slowest_exchange = 0;
  std::vector<double> work(static_cast<size_t>(problem.stages)), links(work.size());  // the beat of each
  double update_s = 0;
  for (int stage = 0; stage < problem.stages; ++stage) {
    const StageWork& needs = problem.work[static_cast<size_t>(stage)];
    double slowness = 0;
    for (int replica = 0; replica < problem.replicas; ++replica)
      slowness = std::max(slowness, 1 / problem.speed[static_cast<size_t>(layout.at(stage, replica))]);
    work[static_cast<size_t>(stage)] = (needs.forward_s + needs.backward_s) * slowness;
    slowest_work = std::max(slowest_work, work[static_cast<size_t>(stage)]);
    cost.compute_s += work[static_cast<size_t>(stage)];
    update_s = std::max(update_s, needs.update_s * slowness);

    const Exchange exchange = exchange_of(problem, stage, layout, needs.backward_s * slowness);
    cost.mean_s += exchange.exposed_s / problem.stages;
    if (exchange.exposed_s >= slowest_exchange) {
      slowest_exchange = exchange.exposed_s;
      cost.hidden_s = exchange.hidden_s;
    }
  }
  double slowest_link = 0;
  for (int stage = 0; stage + 1 < problem.stages; ++stage) {
    const double gb = problem.cut_gb[static_cast<size_t>(stage)];
    double slowest = 0, beat_there = 0, beat_back = 0;
    for (int replica = 0; replica < problem.replicas; ++replica) {
      const Pair& there = problem.pairs.at(layout.at(stage, replica), layout.at(stage + 1, replica));
      const Pair& back = problem.pairs.at(layout.at(stage + 1, replica), layout.at(stage, replica));
      const double busy_there = busy_s(problem.forward, gb, there.s_per_gb);
      const double busy_back = busy_s(problem.backward, gb, back.s_per_gb);
      const double through = there.delay_s + busy_there + back.delay_s + busy_back;
      slowest = std::max(slowest, through);
      cost.mean_s += through / problem.replicas;
      beat_there = std::max(beat_there, busy_there);
      beat_back = std::max(beat_back, busy_back);
    }
    fill_s += slowest;
    slowest_link = std::max({slowest_link, beat_there, beat_back});
    links[static_cast<size_t>(stage)] += beat_there;
    links[static_cast<size_t>(stage) + 1] += beat_back;
  }
  double beat = std::max(slowest_work, slowest_link);
  if (!problem.overlap) {
    for (size_t stage = 0; stage < work.size(); ++stage) beat = std::max(beat, work[stage] + links[stage]);
  }
  const int further = problem.micro_batches - 1;
  cost.compute_s += further * slowest_work + update_s;
  cost.pipeline_s = fill_s + further * (beat - slowest_work);
  cost.data_parallel_s = slowest_exchange;
  cost.total_s = cost.compute_s + cost.pipeline_s + cost.data_parallel_s;
  return cost;
}

}  // namespace syncopate::plan
