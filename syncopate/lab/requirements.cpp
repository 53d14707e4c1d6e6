#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/lab/experiment.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/device.h"
#include "syncopate/run/placement.h"
#include "syncopate/run/world.h"
#include "syncopate/spec/tasks.h"

namespace syncopate::lab {
namespace {

namespace fs = std::filesystem;

/// "; give --data rte=PATH" for a path that [data] was to fill in.
std::string how_to_give(const std::string& path) {
  const size_t open = path.find('{'), close = path.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return "; check the path";
  return fmt::format("; say where it is with --data {}=PATH, or in the file's [data]",
                     path.substr(open + 1, close - open - 1));
}

void require_path(const std::string& what, const std::string& path) {
  std::error_code unreadable;
  if (!path.empty() && !fs::exists(path, unreadable))
    throw DataError("{} {} is not there{}", what, path, how_to_give(path));
}

void require_model(const spec::RunSpec& spec) {
  const std::string& name = spec.model.name;
  const auto& presets = spec::task_family(spec.task.name).models;
  if (name.empty() || std::find(presets.begin(), presets.end(), name) != presets.end()) return;
  if (fs::is_directory(name)) {
    if (!fs::exists(fs::path(name) / "config.json") && !fs::exists(fs::path(name) / "model" / "config.json"))
      throw DataError("the model folder {} has no config.json; give a Hugging Face folder or a finished run",
                      name);
    return;
  }
  const std::vector<std::string> all = spec::model_names();
  if (std::find(all.begin(), all.end(), name) != all.end()) {
    throw ConfigError("the model {} does not learn the task {}; choose one of: {}", name, spec.task.name,
                      fmt::join(presets, ", "));
  }
  const auto near = nearest(name, presets);
  throw ConfigError("there is no model \"{}\": neither a preset nor a folder{}", name,
                    near ? fmt::format("; did you mean \"{}\"?", *near) : how_to_give(name));
}

void require_start(const std::string& from) {
  if (from.empty() || from.starts_with(kPhasePrefix)) return;
  if (!fs::is_directory(from)) {
    throw DataError("--init-from {} is neither a run's folder nor a model folder{}", from, how_to_give(from));
  }
  if (!fs::exists(fs::path(from) / "config.json") && !fs::exists(fs::path(from) / "model" / "config.json")) {
    throw DataError("--init-from {} holds no model; if it is a run, let it finish first", from);
  }
}

void require_inputs(const spec::RunSpec& spec) {
  require_path("the data", spec.task.data);
  require_path("the validation data", spec.validation().path);
  require_path("the vocabulary", spec.model.vocab);
  require_model(spec);
  require_start(spec.model.init_from);
  run::require_place_for(spec.comm.workers + spec.servers());
  run::require_backend(spec.comm.backend, spec.comm.workers + spec.servers());
  if (!spec.network.name.empty()) run::place(spec, static_cast<int>(spec.comm.workers + spec.servers()));
  run::parse_device(spec.compute.device);
}

}  // namespace

void require_inputs(const Experiment& experiment) {
  if (experiment.tune && !parse_number(experiment.tune->validation))
    require_path(experiment.file.string() + ": tune: the validation data", experiment.tune->validation);
  const auto check = [&](const std::string& who, const spec::RunSpec& spec) {
    try {
      require_inputs(spec);
    } catch (const DataError& error) {
      throw DataError("{}: {}: {}", experiment.file.string(), who, error.what());
    } catch (const ConfigError& error) {
      throw ConfigError("{}: {}: {}", experiment.file.string(), who, error.what());
    }
  };
  for (const Experiment::Phase& phase : experiment.phases) check("phase " + phase.label(), phase.spec);
  for (const Experiment::Arm& arm : experiment.arms)
    check(fmt::format("{} ({})", arm.place, arm.name), arm.spec);
}

}  // namespace syncopate::lab
