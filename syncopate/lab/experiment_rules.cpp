#include "syncopate/lab/experiment_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "syncopate/base/error.h"

namespace syncopate::lab {

void share_batch(Experiment& experiment) {
  int64_t largest = 1;
  for (const Experiment::Arm& arm : experiment.arms) {
    if (arm.spec.train.batch_size > 0 || arm.spec.train.global_batch > 0) return;
    largest = std::max(largest, arm.spec.examples_per_step());
  }
  for (Experiment::Arm& arm : experiment.arms) arm.spec.train.global_batch = largest;
}

void share_validation(std::vector<Experiment::Arm>& arms) {
  const auto held_out = [](const spec::RunSpec& spec) {
    const spec::RunSpec::Validation validation = spec.validation();
    return validation.share > 0 ? fmt::format("{}", validation.share) : validation.path;
  };
  struct Wanted {
    std::string what;
    bool given = false;  // by an arm that says so itself
  };
  std::map<std::pair<std::string, std::string>, Wanted> by_data;
  const auto wanted_of = [&](const spec::RunSpec& spec) -> Wanted& {
    return by_data[{spec.task.name, spec.task.data}];
  };
  for (const Experiment::Arm& arm : arms) {
    Wanted& wanted = wanted_of(arm.spec);
    if (held_out(arm.spec).empty() || wanted.given) continue;
    wanted = {held_out(arm.spec), arm.spec.task.validation != "auto"};
  }
  for (Experiment::Arm& arm : arms) {
    const std::string& wanted = wanted_of(arm.spec).what;
    if (held_out(arm.spec) == wanted) continue;
    if (arm.spec.task.validation != "auto") {
      throw ConfigError(
          "{}: validation is {} here and {} in another row of the same data; rows that are compared hold out "
          "the same examples",
          arm.place, arm.spec.task.validation, wanted);
    }
    arm.spec.task.validation = wanted;
  }
}

void join_same(std::vector<Experiment::Arm>& arms) {
  std::map<std::string, size_t> known;
  std::vector<Experiment::Arm> kept;
  for (Experiment::Arm& arm : arms) {
    const auto [place, fresh] = known.emplace(arm.identity(), kept.size());
    if (fresh) {
      kept.push_back(std::move(arm));
      continue;
    }
    try {
      kept[place->second].take_seeds(arm);
    } catch (const ConfigError& error) {
      throw ConfigError("{}: once rows share their batch and what they hold out, {}", arm.place,
                        error.what());
    }
  }
  arms = std::move(kept);
}

void drop_unused_phases(Experiment& experiment) {
  const size_t count = experiment.phases.size();
  std::vector<bool> used(count, false);
  for (const Experiment::Arm& arm : experiment.arms) {
    for (const auto& start : arm.starts) {
      for (std::optional<size_t> at = start; at && !used[*at]; at = experiment.phases[*at].after)
        used[*at] = true;
    }
  }
  std::set<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    if (used[i]) names.insert(experiment.phases[i].name);
  }
  std::vector<bool> keep(count, false);
  for (size_t i = count; i-- > 0;) {  // a phase stands behind those that it starts from
    const Experiment::Phase& phase = experiment.phases[i];
    keep[i] = keep[i] || used[i] || !names.contains(phase.name);
    if (keep[i] && phase.after) keep[*phase.after] = true;
  }
  std::vector<size_t> place(count, 0);
  std::vector<Experiment::Phase> kept;
  for (size_t i = 0; i < count; ++i) {
    Experiment::Phase& phase = experiment.phases[i];
    if (!keep[i]) continue;
    if (phase.after) phase.after = place[*phase.after];
    place[i] = kept.size();
    kept.push_back(std::move(phase));
  }
  experiment.phases = std::move(kept);
  for (Experiment::Arm& arm : experiment.arms) {
    for (auto& start : arm.starts) {
      if (start) start = place[*start];
    }
  }
}

void require_few(const Experiment& experiment, int64_t most) {
  double runs = static_cast<double>(experiment.phases.size());
  for (const Experiment::Arm& arm : experiment.arms) {
    runs += static_cast<double>(arm.seeds.size());
    if (arm.tuned) {
      runs += static_cast<double>(experiment.tune->values.size() *
                                  std::max<size_t>(1, experiment.tune->seeds.size()));
    }
  }
  if (runs > static_cast<double>(most)) {
    throw ConfigError("it makes {:.0f} runs; use fewer values, or allow them with --max-runs {:.0f}", runs,
                      runs);
  }
}

}  // namespace syncopate::lab
