#include "syncopate/sim/predict.h"

#include <algorithm>
#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/sim/engine.h"
#include "syncopate/sim/measured_for.h"
#include "syncopate/sim/steps.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::sim {
namespace {

/// What it takes a core to deal with one of the lab's messages (docs/advice.md).
constexpr double kMessage = 0.12e-3;

/// What a thread that a message wakes waits for on a machine whose cores all compute: a slice of Linux's
/// scheduler on two cores (docs/advice.md).
constexpr double kSlice = 1.4e-3;

/// Between threads of one process: no socket, no copy.
LocalCosts between_threads(LocalCosts costs) {
  costs.operation_s = std::min(costs.operation_s, 50e-6);
  costs.loopback_gbyte = std::max(costs.loopback_gbyte, costs.copy_gbyte);
  return costs;
}

std::vector<RankTime> times_of(const spec::RunSpec& spec, const Scene& scene, double batch) {
  const BatchTime time = scene.profile.at(batch);
  const double share =
      core_factor(scene.profile, scene.one_machine ? spec.comm.workers : 1, spec.compute.threads);
  std::vector<RankTime> times;
  for (int rank = 0; rank < spec.comm.workers; ++rank) {
    const network::Host& host =
        scene.topology.hosts()[static_cast<size_t>(scene.seats[static_cast<size_t>(rank)])];
    const double factor = scene.one_machine ? share : share / host.speed;
    times.push_back({.forward = factor * time.forward_s,
                     .backward = factor * time.backward_s,
                     .sleep = (spec.slowness_of(rank) - 1) * factor * (time.forward_s + time.backward_s),
                     .update = factor * time.update_s,
                     .data = factor * time.data_s,
                     .other = factor * time.other_s});
  }
  return times;
}

void check_scene(const spec::RunSpec& spec, const Scene& scene) {
  spec.validate();
  const auto ranks = static_cast<size_t>(spec.comm.workers + spec.servers());
  check(scene.seats.size() == ranks, "a seat for every rank");
  const spec::StrategyInfo& strategy = spec::strategy_info(spec.strategy.name);
  const bool one_memory = strategy.in_one_process || (strategy.rhythm == spec::Rhythm::kFree &&
                                                      strategy.pattern == spec::Pattern::kNothing);
  const bool one_host = std::all_of(scene.seats.begin(), scene.seats.end(),
                                    [&](int host) { return host == scene.seats.front(); });
  if (one_memory && !one_host) {
    throw ConfigError("{} works in one host's memory, and its workers sit on several; take --hosts with one",
                      spec.strategy.name);
  }
  if (strategy.has_servers && spec.staleness_bound() > 0) {
    throw ConfigError(
        "a bound of {} on staleness cannot be predicted: take strategy.staleness=0, where all wait for each "
        "other, or inf",
        spec.strategy.staleness);
  }
}

}  // namespace

Prediction predict(const spec::RunSpec& spec, const Scene& scene) {
  check_scene(spec, scene);
  const spec::StrategyInfo& strategy = spec::strategy_info(spec.strategy.name);
  const bool free = spec.runs_free();
  const auto workers = static_cast<double>(spec.comm.workers);
  const auto global = static_cast<double>(spec.examples_per_step());
  StepsOf what{.spec = spec, .profile = scene.profile, .global_batch = global};
  what.workers = times_of(spec, scene, global / workers);

  Profile profile = scene.profile;
  if (strategy.in_one_process) profile.local = between_threads(profile.local);
  Engine engine(scene.topology, scene.seats, static_cast<int>(spec.comm.workers), profile.local);
  if (scene.one_machine) engine.share_machine(profile.cores, kMessage, kSlice);
  // One period to fall into the rhythm, one to look at; servers' queues take a little longer.
  const int64_t period = period_of(spec), before = strategy.has_servers ? 4 : period;
  const int64_t looked_at = strategy.has_servers ? 8 : period;
  write_steps(engine, what, before + looked_at);
  engine.play();

  Prediction prediction;
  const auto first = static_cast<size_t>(before), last = static_cast<size_t>(before + looked_at);
  const auto steps = static_cast<double>(looked_at);
  // Of a rank's steps so large a share of all is looked at: of rank 0's, or where workers run free of each as
  // many as it makes in a time.
  std::vector<double> share(static_cast<size_t>(spec.comm.workers));
  double all = 0, sent = 0, end = 0;
  for (int rank = 0; rank < spec.comm.workers; ++rank) {
    const auto& own = engine.marks(rank);
    double& part = share[static_cast<size_t>(rank)];
    part = free ? 1 / (own[last].at - own[first].at) : rank == 0 ? 1 : 0;
    all += part;
    sent += (own[last].sent - own[first].sent) / steps;
    end = std::max(end, own[last].at);
  }
  const auto mean = [&](auto&& of_rank) {
    double sum = 0;
    for (int rank = 0; rank < spec.comm.workers; ++rank) {
      if (const double part = share[static_cast<size_t>(rank)]; part > 0) sum += part / all * of_rank(rank);
    }
    return 1e3 * sum;
  };
  const auto between = [&](size_t from, size_t to, double Engine::Mark::*part) {
    return mean([&](int rank) { return engine.marks(rank)[to].*part - engine.marks(rank)[from].*part; });
  };
  const auto timed = [&](double RankTime::*part) {
    return mean([&](int rank) { return what.workers[static_cast<size_t>(rank)].*part; });
  };
  prediction.ms = between(first, last, &Engine::Mark::at) / steps;
  prediction.compute_ms = between(first, last, &Engine::Mark::compute) / steps;
  prediction.exchange_ms = between(first, last, &Engine::Mark::exchange) / steps;
  prediction.data_ms = between(first, last, &Engine::Mark::data) / steps;
  prediction.hidden_ms = between(first, last, &Engine::Mark::hidden) / steps;
  prediction.forward_ms = timed(&RankTime::forward);
  prediction.backward_ms = timed(&RankTime::backward) + timed(&RankTime::sleep);
  prediction.update_ms = strategy.has_servers ? 0 : timed(&RankTime::update);
  prediction.examples_per_s = global / (1e-3 * prediction.ms);
  prediction.bytes_per_step = sent / workers;
  for (size_t i = first; i < last; ++i) prediction.step_ms.push_back(between(i, i + 1, &Engine::Mark::at));
  const auto memory = static_cast<double>(scene.profile.at(global / workers).peak_memory);
  if (memory > 0) prediction.memory = memory + kept_bytes(spec, scene.profile.elements());
  const double all_steps = steps + static_cast<double>(before);
  for (const Engine::WireUse& use : engine.wires()) {
    prediction.links.push_back({.from = use.from,
                                .to = use.to,
                                .bytes = use.bytes / all_steps,
                                .busy = std::min(1.0, use.busy_s / end)});
  }
  return prediction;
}

}  // namespace syncopate::sim
