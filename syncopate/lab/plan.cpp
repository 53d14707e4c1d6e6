#include "syncopate/lab/plan.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace syncopate::lab {
namespace {

/// The start of an arm's run with that seed; tuning may use seeds of its own, which start as the first does.
std::optional<size_t> start_of(const Experiment::Arm& arm, int64_t seed) {
  for (size_t i = 0; i < arm.seeds.size(); ++i) {
    if (arm.seeds[i] == seed) return arm.starts[i];
  }
  return arm.starts.front();
}

/// Alike in runs that take about as long: only seed, rate and moments may differ.
std::string cost_of(const SweepRun& run) {
  spec::RunSpec spec = run.spec;
  const std::string optimizer = spec.optim.name;
  spec.optim = {};  // rates and moments take no time
  spec.optim.name = optimizer;
  spec.train.seed = 0;
  if (!spec.model.init_from.empty()) spec.model.init_from = "phase";  // whose seeds are others
  return spec.fields().to_json().dump();
}

SweepRun run_of_arm(const Experiment::Arm& arm, size_t index, RunKind kind, spec::RunSpec spec) {
  SweepRun run;
  run.kind = kind;
  run.arm = index;
  run.row = arm.row;
  run.name = arm.name;
  run.axes = arm.axes;
  run.spec = std::move(spec);
  run.start = start_of(arm, run.seed());
  run.cost = cost_of(run);
  return run;
}

void start_from(SweepRun& run, const Plan& plan) {
  // The phases' runs come first, in their order.
  if (run.start)
    run.spec.model.init_from = (plan.out / plan.runs[*run.start].folder).lexically_normal().string();
}

}  // namespace

std::string name_of(RunKind kind) {
  constexpr std::array<const char*, 4> kNames{"phase", "tune", "row", "control"};
  return kNames.at(static_cast<size_t>(kind));
}

std::string name_of(RunState state) {
  constexpr std::array<const char*, 7> kNames{"planned", "running", "done",   "diverged",
                                              "failed",  "killed",  "stopped"};
  return kNames.at(static_cast<size_t>(state));
}

std::string SweepRun::arm_id() const { return fmt::format("{}{}", kind == RunKind::kPhase ? "p" : "a", arm); }

std::string SweepRun::label() const {
  if (kind == RunKind::kPhase) return "phase " + name;
  if (kind == RunKind::kTune) return fmt::format("tuning {}, {}, seed {}", name, tried, seed());
  return fmt::format("{}, seed {}", name, seed());
}

void Plan::give_folder(SweepRun& run) {
  spec::RunSpec named = run.spec;
  // A start is known by its name: the sweep's folder may be spelled otherwise tomorrow, or moved.
  if (run.start) named.model.init_from = runs[*run.start].folder;
  const std::string hash = named.fields().hash();
  run.folder = named.name();
  // Eight digits of the hash are enough for people; among thousands of runs two may share them.
  if (folders.emplace(run.folder, hash).first->second != hash) run.folder += hash.substr(8);
}

void Plan::add_trial(const Experiment& experiment, Tuning& tuning, double value, bool refined) {
  const Experiment::Arm& arm = experiment.arms[tuning.arm];
  Trial& trial = tuning.at(value);
  if (!trial.seeds.empty()) return;
  trial.refined = refined;
  trial.seeds = experiment.tune->seeds;
  if (trial.seeds.empty()) trial.seeds = {arm.seeds.front()};
  trial.scores.resize(trial.seeds.size());
  trial.losses.resize(trial.seeds.size(), std::numeric_limits<double>::quiet_NaN());
  for (const int64_t seed : trial.seeds) {
    SweepRun run =
        run_of_arm(arm, tuning.arm, RunKind::kTune, tuning_spec(*experiment.tune, arm, value, seed));
    run.id = fmt::format("r{}", runs.size());
    run.tried = in_name({tuning.setting, fmt::format("{:g}", value)});
    start_from(run, *this);
    give_folder(run);
    runs.push_back(std::move(run));
  }
}

void Plan::settle(const Experiment& experiment, const Tuning& tuning) {
  for (SweepRun& run : runs) {
    if (run.settled || run.arm != tuning.arm) continue;
    run.spec.fields().set(experiment.tune->setting, fmt::format("{}", *tuning.best));
    run.settled = true;
    give_folder(run);
  }
  mark_same();
}

void Plan::mark_same() {
  std::map<std::string, size_t> first;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].timed() || runs[i].folder.empty()) continue;
    const auto [place, fresh] = first.emplace(runs[i].folder, i);
    if (!fresh) runs[i].same_as = place->second;
  }
}

Plan make_plan(const Experiment& experiment, const std::filesystem::path& out) {
  Plan plan{.out = out, .runs = {}, .tunings = {}, .folders = {}};
  for (size_t i = 0; i < experiment.phases.size(); ++i) {
    const Experiment::Phase& phase = experiment.phases[i];
    SweepRun run;
    run.id = fmt::format("r{}", i);
    run.kind = RunKind::kPhase;
    run.arm = i;
    run.row = phase.name;
    run.name = phase.label();
    run.axes = phase.axes;
    run.spec = phase.spec;
    run.start = phase.after;
    run.cost = cost_of(run);
    start_from(run, plan);
    plan.give_folder(run);
    plan.runs.push_back(std::move(run));
  }
  for (size_t arm = 0; arm < experiment.arms.size(); ++arm) {
    if (!experiment.arms[arm].tuned) continue;
    plan.tunings.push_back({.arm = arm, .setting = experiment.tune->setting});
    for (const double value : experiment.tune->values)
      plan.add_trial(experiment, plan.tunings.back(), value, false);
  }
  for (size_t index = 0; index < experiment.arms.size(); ++index) {
    const Experiment::Arm& arm = experiment.arms[index];
    for (const int64_t seed : arm.seeds) {
      SweepRun run =
          run_of_arm(arm, index, arm.control() ? RunKind::kControl : RunKind::kRow, arm.with_seed(seed));
      run.id = fmt::format("r{}", plan.runs.size());
      start_from(run, plan);
      run.settled = !arm.tuned;
      if (run.settled) plan.give_folder(run);
      plan.runs.push_back(std::move(run));
    }
  }
  return plan;
}

}  // namespace syncopate::lab
