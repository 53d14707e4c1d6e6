#include "syncopate/lab/comparison_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/spec/effect.h"

namespace syncopate::lab {
namespace {

using Json = nlohmann::ordered_json;

void require_known(const char* table, const std::string& key, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), key) == known.end())
    throw ConfigError("{}: unknown entry \"{}\"{}", table, key, suggestion(key, known));
}

const Json& table_of(const Json& file, const char* name) {
  if (!file[name].is_object()) throw ConfigError("{0} must be a table: [{0}]", name);
  return file[name];
}

double number(const char* table, const std::string& key, const Json& value) {
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    throw ConfigError("{}: {} must be a number", table, key);
  return value;
}

double positive(const char* table, const std::string& key, const Json& value) {
  const double found = number(table, key, value);
  if (!(found > 0)) throw ConfigError("{}: {} must be above 0, got {}", table, key, found);
  return found;
}

int64_t whole(const char* table, const std::string& key, const Json& value, int64_t least) {
  if (!value.is_number_integer() || value.get<int64_t>() < least)
    throw ConfigError("{}: {} must be a whole number of {} or more", table, key, least);
  return value;
}

std::string text(const char* table, const std::string& key, const Json& value) {
  if (!value.is_string()) throw ConfigError("{}: {} must be a text in quotes", table, key);
  return value;
}

const Json& list(const char* table, const std::string& key, const Json& value) {
  if (!value.is_array() || value.empty()) throw ConfigError("{}: {} must be a list of values", table, key);
  return value;
}

Experiment::Tune read_tune(const Json& table) {
  Experiment::Tune tune;
  for (const auto& [key, value] : table.items()) {
    if (key == "seeds") {
      for (const Json& seed : list("tune", key, value)) tune.seeds.push_back(whole("tune", key, seed, 0));
    } else if (key == "refine") {
      tune.refine = whole("tune", key, value, 0);
    } else if (key == "epochs") {
      tune.epochs = whole("tune", key, value, 1);
    } else if (key == "steps") {
      tune.steps = whole("tune", key, value, 1);
    } else if (key == "validation") {
      tune.validation = value.is_number() ? fmt::format("{}", value.get<double>()) : text("tune", key, value);
    } else {
      spec::RunSpec scratch;
      const Fields fields = scratch.fields();
      const Fields::Field& field = fields.find(key);
      if (!std::holds_alternative<double*>(field.target))
        throw ConfigError("tune: {} is not a number that could be tuned", key);
      if (!tune.values.empty()) throw ConfigError("tune: {} beside {}; tune one setting", key, tune.setting);
      tune.setting = field.name;
      for (const Json& each : list("tune", key, value)) tune.values.push_back(number("tune", key, each));
    }
  }
  if (tune.values.empty()) throw ConfigError("tune: it lists no values; give lr = [1e-4, 1e-3, 1e-2]");
  if (tune.epochs > 0 && tune.steps > 0) throw ConfigError("tune: epochs and steps exclude each other");
  std::sort(tune.values.begin(), tune.values.end());
  if (std::adjacent_find(tune.values.begin(), tune.values.end()) != tune.values.end())
    throw ConfigError("tune: it lists a value twice");
  if (std::set<int64_t>(tune.seeds.begin(), tune.seeds.end()).size() != tune.seeds.size())
    throw ConfigError("tune: it lists a seed twice");
  return tune;
}

Experiment::Target read_target(const Json& table) {
  if (table.contains("measure") || table.contains("value")) {
    for (const auto& [key, value] : table.items()) require_known("target", key, {"measure", "value"});
    if (!table.contains("measure") || !table.contains("value"))
      throw ConfigError("target: give measure and value, or accuracy = 0.8");
    return {text("target", "measure", table["measure"]), number("target", "value", table["value"])};
  }
  if (table.size() != 1) throw ConfigError("target: give one measure, accuracy = 0.8");
  const auto only = table.begin();
  return {only.key(), number("target", only.key(), only.value())};
}

/// Reads [compare]; whether it asks for controls.
bool read_compare(const Json& table, Experiment& experiment) {
  static const std::vector<std::string> known{"baseline",    "differs",  "controls",
                                              "worker_hour", "currency", "link_gbit"};
  static const std::vector<std::string> checks{"examples", "start", "evaluation", "data",     "machine",
                                               "threads",  "batch", "updates",    "selection"};
  bool controls = false;
  for (const auto& [key, value] : table.items()) {
    require_known("compare", key, known);
    if (key == "baseline") experiment.baseline = text("compare", key, value);
    if (key == "currency") experiment.currency = text("compare", key, value);
    if (key == "worker_hour") experiment.worker_hour = positive("compare", key, value);
    if (key == "link_gbit") experiment.link_gbit = positive("compare", key, value);
    if (key == "controls") {
      if (!value.is_boolean()) throw ConfigError("compare: controls must be true or false");
      controls = value;
    }
    if (key != "differs") continue;
    for (const Json& each : list("compare", key, value)) {
      experiment.differs.push_back(text("compare", key, each));
      if (std::find(checks.begin(), checks.end(), experiment.differs.back()) == checks.end()) {
        throw ConfigError("compare: differs: there is no check \"{}\"{}", experiment.differs.back(),
                          suggestion(experiment.differs.back(), checks));
      }
    }
  }
  return controls;
}

void require_baseline(const Experiment& experiment) {
  if (!experiment.baseline) return;
  std::vector<std::string> names;
  for (const Experiment::Arm& arm : experiment.arms) {
    if (arm.row == *experiment.baseline || arm.name == *experiment.baseline) return;
    names.push_back(arm.name);
  }
  throw ConfigError("compare: no row is called \"{}\"{}", *experiment.baseline,
                    suggestion(*experiment.baseline, names));
}

/// Which arms are tuned: those that heed the setting and do not settle it themselves.
void mark_tuned(Experiment& experiment) {
  bool any = false;
  for (Experiment::Arm& arm : experiment.arms) {
    if (!experiment.tune) {
      arm.tuned = false;
      continue;
    }
    const std::string& setting = experiment.tune->setting;
    if (find(arm.axes, setting) != nullptr)
      throw ConfigError("tune: {} is an axis too; it is either tuned or swept", setting);
    const bool settled = std::find(arm.own.begin(), arm.own.end(), setting) != arm.own.end();
    arm.tuned = !settled && !spec::no_effect(arm.spec, setting);
    any = any || arm.tuned;
  }
  if (experiment.tune && !any)
    throw ConfigError("tune: every row sets {} itself; leave [tune] out", experiment.tune->setting);
}

/// Every value has to make a run.
void require_tuning_runs(const Experiment& experiment) {
  if (!experiment.tune) return;
  for (const Experiment::Arm& arm : experiment.arms) {
    if (!arm.tuned) continue;
    for (const double value : experiment.tune->values) {
      try {
        tuning_spec(*experiment.tune, arm, value, arm.seeds.front()).validate();
      } catch (const ConfigError& error) {
        throw ConfigError("tune: {}: {}", arm.name, error.what());
      }
    }
  }
}

}  // namespace

void read_comparison(const Json& file, Experiment& experiment) {
  if (file.contains("tune")) experiment.tune = read_tune(table_of(file, "tune"));
  if (file.contains("target")) experiment.target = read_target(table_of(file, "target"));
  const bool controls = file.contains("compare") && read_compare(table_of(file, "compare"), experiment);
  require_baseline(experiment);
  mark_tuned(experiment);
  require_tuning_runs(experiment);
  if (controls) add_controls(experiment);
}

}  // namespace syncopate::lab
