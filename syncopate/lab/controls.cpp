#include <algorithm>
#include <map>
#include <tuple>

#include "syncopate/lab/experiment.h"
#include "syncopate/spec/effect.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::lab {
namespace {

int64_t updates_per_step(const spec::RunSpec& spec) { return spec.runs_free() ? spec.comm.workers : 1; }

/// Whether the two make the same updates: as many, of as many examples.
bool same_updates(const spec::RunSpec& a, const spec::RunSpec& b) {
  const auto length = [](const spec::RunSpec& spec) {
    // With epochs, equal batches of the same data make equal numbers of updates.
    return spec.train.steps > 0 ? std::pair(spec.train.steps * updates_per_step(spec), int64_t{0})
                                : std::pair(int64_t{0}, std::max<int64_t>(1, spec.train.epochs));
  };
  return examples_per_update(a) == examples_per_update(b) && length(a) == length(b);
}

/// What a run is, whatever its seed and however its batch was said.
std::string in_one_form(spec::RunSpec spec) {
  spec.train.seed = 0;
  spec.train.global_batch = spec.examples_per_step();
  spec.train.batch_size = 0;
  return spec.fields().to_json().dump();
}

/// What a run learns from which data: the report compares others only where there is nothing better.
auto problem_of(const spec::RunSpec& spec) {
  return std::tuple(spec.task.name, spec.task.data, spec.task.limit, spec.task.test_limit, spec.model.name);
}

/// Arms that the report may take as the baseline.
std::vector<size_t> baselines(const Experiment& experiment) {
  const std::vector<Experiment::Arm>& arms = experiment.arms;
  const auto all_that = [&](const auto& fits) {
    std::vector<size_t> found;
    for (size_t i = 0; i < arms.size(); ++i) {
      if (fits(arms[i])) found.push_back(i);
    }
    return found;
  };
  auto found = all_that([&](const Experiment::Arm& arm) {
    return arm.row == experiment.baseline || arm.name == experiment.baseline;
  });
  if (found.empty()) {
    found = all_that(
        [](const Experiment::Arm& arm) { return spec::strategy_info(arm.spec.strategy.name).one_worker; });
  }
  if (!found.empty()) return found;
  int64_t fewest = arms.front().spec.comm.workers;
  for (const Experiment::Arm& arm : arms) fewest = std::min(fewest, arm.spec.comm.workers);
  return all_that([&](const Experiment::Arm& arm) { return arm.spec.comm.workers == fewest; });
}

}  // namespace

int64_t examples_per_update(const spec::RunSpec& spec) {
  return spec.examples_per_step() / updates_per_step(spec);
}

spec::RunSpec serial_control(const spec::RunSpec& spec) {
  spec::RunSpec control = spec;
  control.strategy.name = "single";
  control.codec.name = "none";
  control.comm.workers = 1;
  control.comm.fault.clear();
  control.comm.slow.clear();
  control.train.accumulate = 1;
  control.train.balance = false;
  control.train.batch_size = 0;
  control.train.global_batch = examples_per_update(spec);
  if (spec.train.steps > 0) control.train.steps = spec.train.steps * updates_per_step(spec);
  spec::drop_unheeded(control, {});
  return control;
}

void add_controls(Experiment& experiment) {
  std::vector<Experiment::Arm>& arms = experiment.arms;
  if (arms.empty()) return;
  const std::vector<size_t> candidates = baselines(experiment);
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < arms.size(); ++i) known.emplace(in_one_form(arms[i].spec), i);
  const size_t rows = arms.size();
  for (size_t i = 0; i < rows; ++i) {
    const Experiment::Arm arm = arms[i];
    if (spec::strategy_info(arm.spec.strategy.name).one_worker) continue;  // is serial itself
    const auto own = std::find_if(candidates.begin(), candidates.end(), [&](size_t candidate) {
      return problem_of(arms[candidate].spec) == problem_of(arm.spec);
    });
    const spec::RunSpec& baseline = arms[own == candidates.end() ? candidates.front() : *own].spec;
    if (arm.spec.task.name != baseline.task.name || same_updates(arm.spec, baseline)) continue;
    Experiment::Arm control = arm;
    control.spec = serial_control(arm.spec);
    const auto [place, fresh] = known.emplace(in_one_form(control.spec), arms.size());
    if (!fresh) {
      if (place->second >= rows) arms[place->second].control_of.push_back(i);
      continue;
    }
    control.name = "serial control of " + arm.name;
    control.row = control.name;
    control.axes.clear();
    control.control_of = {i};
    arms.push_back(std::move(control));
  }
}

}  // namespace syncopate::lab
