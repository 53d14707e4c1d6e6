#include <algorithm>
#include <map>

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
  size_t baseline = 0;
  for (size_t i = arms.size(); i-- > 0;) {
    if (arms[i].row == experiment.baseline || arms[i].name == experiment.baseline) baseline = i;
  }
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < arms.size(); ++i) known.emplace(in_one_form(arms[i].spec), i);
  const size_t rows = arms.size();
  for (size_t i = 0; i < rows; ++i) {
    const Experiment::Arm arm = arms[i];
    if (spec::strategy_info(arm.spec.strategy.name).one_worker) continue;  // is serial itself
    if (arm.spec.task.name != arms[baseline].spec.task.name) continue;     // is compared with others
    if (same_updates(arm.spec, arms[baseline].spec)) continue;
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
