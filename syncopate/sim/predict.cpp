#include "syncopate/sim/predict.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

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

/// Seconds of each rank for one that the profile has. Stages compute in turns: what they take of the cores
/// is played out, and a stage alone has one.
std::vector<double> slowness(const spec::RunSpec& spec, const Scene& scene) {
  const bool in_turns = spec.pipeline.stages > 1;
  const int64_t threads =
      in_turns && scene.one_machine && spec.compute.threads == 0 ? 1 : spec.compute.threads;
  const double share =
      core_factor(scene.profile, scene.one_machine && !in_turns ? spec.comm.workers : 1, threads);
  std::vector<double> factors;
  for (int rank = 0; rank < spec.comm.workers; ++rank) {
    const network::Host& host =
        scene.topology.hosts()[static_cast<size_t>(scene.seats[static_cast<size_t>(rank)])];
    factors.push_back(scene.one_machine ? share : share / host.speed);
  }
  return factors;
}

/// Replicas in one memory share the update out.
double part_of_update(const spec::RunSpec& spec, const Scene& scene, const std::vector<int>& replicas) {
  const auto seat = [&](int rank) { return scene.seats[static_cast<size_t>(rank)]; };
  const bool one_host = std::all_of(replicas.begin(), replicas.end(),
                                    [&](int rank) { return seat(rank) == seat(replicas.front()); });
  return one_host && spec::shares_update(spec) ? 1 / static_cast<double>(replicas.size()) : 1;
}

std::vector<RankTime> times_of(const spec::RunSpec& spec, const Scene& scene, double batch) {
  const BatchTime time = scene.profile.at(batch);
  std::vector<RankTime> times;
  for (const double factor : slowness(spec, scene)) {
    const auto rank = static_cast<int>(times.size());
    times.push_back({.slow = factor,
                     .forward = factor * time.forward_s,
                     .backward = factor * time.backward_s,
                     .sleep = (spec.slowness_of(rank) - 1) * factor * (time.forward_s + time.backward_s),
                     .update = factor * time.update_s,
                     .data = factor * time.data_s,
                     .other = factor * time.other_s});
  }
  return times;
}

/// A pipeline: who holds which stage, and what that costs.
struct Staged {
  std::vector<std::vector<int>> layout{};
  std::vector<StageCost> costs{};
  std::vector<Profile> profiles{};  ///< of each stage: its parameters
  std::vector<RankTime> times{};    ///< of each rank
  double memory = 0;                ///< bytes on a device of the fullest stage; 0: not known
  std::unique_ptr<Crossings> crossings{};
};

/// fp32: a weight, its gradient and two of an optimizer's numbers, and the micro-batches on their way.
double memory_of_stages(const spec::RunSpec& spec, const Profile& profile, const std::vector<Profile>& stages,
                        double examples) {
  const int64_t micro = spec.train.accumulate * spec.micro_batches();
  const std::vector<size_t> counts = blocks_of_stages(spec, profile.layers);
  double most = 0;
  bool known = false;
  for (size_t stage = 0, block = 0; stage < stages.size(); ++stage) {
    const auto left = static_cast<int64_t>(stages.size() - stage);
    const auto kept = static_cast<double>(spec.pipeline.schedule == "gpipe" ? micro : std::min(micro, left));
    double activations = 0;
    for (size_t i = 0; i < counts[stage]; ++i) activations += profile.layers[block++].activation_bytes;
    known = known || activations > 0;
    most = std::max(most, 16 * static_cast<double>(stages[stage].elements()) + kept * examples * activations);
  }
  return known ? most : 0;
}

Staged staged_of(const spec::RunSpec& spec, const Scene& scene, double batch) {
  Staged made{.layout = spec.layout(),
              .costs = scene.stages.empty() ? stage_costs(spec, scene.profile) : scene.stages};
  const double micro = static_cast<double>(spec.train.accumulate * spec.micro_batches());
  made.times = times_of(spec, scene, batch);
  const auto parameters = stage_parameters(spec, scene.profile);
  double all = 0;
  for (size_t stage = 0; stage < made.layout.size(); ++stage) {
    made.profiles.push_back(scene.profile);
    made.profiles.back().parameters = parameters[stage];
    all += static_cast<double>(made.profiles.back().elements());
  }
  for (size_t stage = 0; stage < made.layout.size(); ++stage) {
    const double share = static_cast<double>(made.profiles[stage].elements()) / std::max(1.0, all);
    for (const int rank : made.layout[stage]) {
      RankTime& time = made.times[static_cast<size_t>(rank)];
      if (!scene.stages.empty()) time.slow = 1;
      time.forward = micro * time.slow * made.costs[stage].forward_s;
      time.backward = micro * time.slow * made.costs[stage].backward_s;
      time.sleep = (spec.slowness_of(rank) - 1) * (time.forward + time.backward);
      time.update *= share * part_of_update(spec, scene, made.layout[stage]);
      time.other *= share;
    }
  }
  made.memory = memory_of_stages(spec, scene.profile, made.profiles, batch / micro);
  return made;
}

/// Gives every worker the actions of its stage.
void write_staged(Engine& engine, const spec::RunSpec& spec, const Scene& scene, Staged& staged,
                  double global, int64_t steps) {
  staged.crossings =
      std::make_unique<Crossings>(engine, spec, staged.layout, staged.costs, scene.profile.tied_bytes);
  for (size_t stage = 0; stage < staged.layout.size(); ++stage) {
    StepsOf what{.spec = spec,
                 .profile = staged.profiles[stage],
                 .global_batch = global,
                 .ranks = staged.layout[stage],
                 .crossings = staged.crossings.get(),
                 .stage = stage};
    for (const int rank : what.ranks) what.workers.push_back(staged.times[static_cast<size_t>(rank)]);
    write_steps(engine, what, steps);
  }
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
  const auto replicas = static_cast<double>(spec.replicas());
  const bool in_stages = spec.pipeline.stages > 1;
  StepsOf what{.spec = spec, .profile = scene.profile, .global_batch = global};
  Staged staged;
  if (in_stages) {
    staged = staged_of(spec, scene, global / replicas);
    what.workers = staged.times;
  } else {
    what.workers = times_of(spec, scene, global / workers);
    std::vector<int> ranks(what.workers.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    for (RankTime& time : what.workers) time.update *= part_of_update(spec, scene, ranks);
  }

  Profile profile = scene.profile;
  if (strategy.in_one_process) profile.local = between_threads(profile.local);
  Engine engine(scene.topology, scene.seats, static_cast<int>(spec.comm.workers), profile.local);
  const bool in_levels = spec.comm.backend == "auto" || spec.comm.backend == "shm+gloo";
  if (in_levels && !strategy.in_one_process) engine.use_levels();
  if (scene.one_machine) engine.share_machine(profile.cores, kMessage, kSlice);
  if (scene.one_machine && in_stages && scene.stages.empty()) engine.share_cores(profile.cores);
  // One period to fall into the rhythm, one to look at; servers' queues take a little longer.
  const int64_t period = period_of(spec), before = strategy.has_servers ? 4 : period;
  const int64_t looked_at = strategy.has_servers ? 8 : period;
  if (in_stages) {
    write_staged(engine, spec, scene, staged, global, before + looked_at);
  } else {
    write_steps(engine, what, before + looked_at);
  }
  engine.play();

  Prediction prediction;
  const auto first = static_cast<size_t>(before), last = static_cast<size_t>(before + looked_at);
  const auto steps = static_cast<double>(looked_at);
  // Of a rank's steps so large a share of all is looked at: of rank 0's, or where workers run free of each as
  // many as it makes in a time.
  std::vector<double> share(static_cast<size_t>(spec.comm.workers));
  double all = 0, sent = 0, end = 0;
  for (int rank = 0; rank < spec.comm.workers; ++rank) {
    const auto& own = engine.marks(engine.first_actor(rank));
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
    return mean([&](int rank) {
      const auto& own = engine.marks(engine.first_actor(rank));
      return own[to].*part - own[from].*part;
    });
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
  const double memory =
      in_stages ? staged.memory : static_cast<double>(scene.profile.at(global / workers).peak_memory);
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
