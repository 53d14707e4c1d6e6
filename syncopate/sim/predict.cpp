#include "syncopate/sim/predict.h"

#include <algorithm>
#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/sim/engine.h"
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

/// The profile's times hold for so many workers at once; with more or fewer on the same cores each gets
/// another share of them.
double share_of_cores(const Profile& profile, int64_t workers) {
  if (profile.cores <= 0) return 1;
  const auto cores = static_cast<double>(profile.cores);
  // As run::default_threads deals them out: one worker takes all cores, of several each takes one.
  const auto used = [&](int64_t count) {
    return count == 1 ? cores : std::min(1.0, cores / static_cast<double>(count));
  };
  return used(profile.workers) / used(workers);
}

std::vector<RankTime> times_of(const spec::RunSpec& spec, const Scene& scene, double batch) {
  const BatchTime time = scene.profile.at(batch);
  std::vector<RankTime> times;
  for (int rank = 0; rank < spec.comm.workers; ++rank) {
    const network::Host& host =
        scene.topology.hosts()[static_cast<size_t>(scene.seats[static_cast<size_t>(rank)])];
    const double factor =
        scene.one_machine ? share_of_cores(scene.profile, spec.comm.workers) : 1 / host.speed;
    const double passes = factor * spec.slowness_of(rank);
    times.push_back({.forward = passes * time.forward_s,
                     .backward = passes * time.backward_s,
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
  Engine engine(scene.topology, scene.seats, static_cast<int>(spec.comm.workers), profile.local, 0);
  if (scene.one_machine) engine.share_machine(profile.cores, kMessage, kSlice);
  // One period to fall into the rhythm, one to look at; servers' queues take a little longer.
  const int64_t period = period_of(spec), before = strategy.has_servers ? 4 : period;
  const int64_t looked_at = strategy.has_servers ? 8 : period;
  write_steps(engine, what, before + looked_at);
  engine.play();

  Prediction prediction;
  const auto& marks = engine.marks(0);
  const auto first = static_cast<size_t>(before), last = static_cast<size_t>(before + looked_at);
  const auto steps = static_cast<double>(looked_at);
  const auto mean = [&](double Engine::Mark::*part) {
    return (marks[last].*part - marks[first].*part) / steps;
  };
  double per_second = 0, sent = 0;
  for (int rank = 0; rank < spec.comm.workers; ++rank) {
    const auto& own = engine.marks(rank);
    per_second += global / workers * steps / (own[last].at - own[first].at);
    sent += (own[last].sent - own[first].sent) / steps;
  }
  // Where workers run free, a mean over all their updates: of fast ones there are more.
  prediction.ms = 1e3 * (free ? global / per_second : mean(&Engine::Mark::at));
  prediction.compute_ms = 1e3 * (mean(&Engine::Mark::compute));
  prediction.exchange_ms = 1e3 * mean(&Engine::Mark::exchange);
  prediction.hidden_ms = 1e3 * mean(&Engine::Mark::hidden);
  prediction.examples_per_s = free ? per_second : global / (1e-3 * prediction.ms);
  prediction.bytes_per_step = sent / workers;
  for (size_t i = first; i < last; ++i) prediction.step_ms.push_back(1e3 * (marks[i + 1].at - marks[i].at));
  const auto memory = static_cast<double>(scene.profile.at(global / workers).peak_memory);
  if (memory > 0) prediction.memory = memory + kept_bytes(spec, scene.profile.elements());
  const double all_steps = steps + static_cast<double>(before);
  for (const Engine::WireUse& use : engine.wires()) {
    prediction.links.push_back({.from = use.from,
                                .to = use.to,
                                .bytes = use.bytes / all_steps,
                                .busy = std::min(1.0, use.busy_s / marks[last].at)});
  }
  return prediction;
}

}  // namespace syncopate::sim
