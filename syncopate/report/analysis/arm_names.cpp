// What arms of a folder of runs are called.
#include <fmt/format.h>

#include <map>
#include <set>

#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

/// What is added to an arm's name to tell it from its like.
std::string told_apart_by(const std::string& setting, const std::string& value) {
  if (setting == "comm.workers") return fmt::format(", {} workers", value);
  if (setting == "network.name") return ", on " + value;
  return fmt::format(", {} {}", last_part(setting), value);
}

}  // namespace

std::string label_of(const RunResult& run, bool mixed) {
  if (run.strategy.empty()) return run.folder;
  std::string label =
      run.codec.empty() || run.codec == "none" ? run.strategy : run.strategy + ", " + run.codec;
  if (run.stages > 1) label += ", " + stages_text(run.stages, run.activation_codec);
  return run.simulated && mixed ? label + ", simulated" : label;
}

void name_arms(Results& results) {
  std::map<std::string, std::vector<size_t>> alike;
  for (size_t i = 0; i < results.arms.size(); ++i) alike[results.arms[i].name].push_back(i);
  for (const auto& group : alike) {
    if (group.second.size() < 2) continue;
    for (const std::string& setting : results.varies) {
      if (setting == "strategy.name" || setting == "codec.name" || setting == "pipeline.stages" ||
          setting == "activation.codec")
        continue;
      std::set<std::string> values;
      const auto value_in = [&](size_t arm) {
        for (const auto& [name, value] : results.arms[arm].settings) {
          if (name == setting) return value;
        }
        return std::string();
      };
      for (const size_t arm : group.second) values.insert(value_in(arm));
      if (values.size() < 2) continue;
      for (const size_t arm : group.second) {
        const std::string value = value_in(arm);
        if (value.empty()) continue;
        results.arms[arm].name += told_apart_by(setting, value);
      }
    }
  }
}

}  // namespace syncopate::report
