// What arms and phases are called, for people.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "syncopate/lab/experiment.h"

namespace syncopate::lab {
namespace {

/// Names of things speak for themselves; a number needs to say of what.
bool speaks_for_itself(const std::string& setting) {
  static const std::set<std::string> names{
      "strategy.name",  "codec.name", "optim.name",        "model.name",     "task.name",
      "optim.schedule", "task.data",  "compute.precision", "compute.device", "network.name"};
  return names.contains(setting);
}

/// Settings, the seed apart, in which arms differ.
Settings settings_of(spec::RunSpec spec) {
  Settings settings;
  const Fields fields = spec.fields();
  for (const Fields::Field& field : fields.all()) {
    if (field.name != "train.seed") settings.push_back({field.name, Fields::text_of(field)});
  }
  return settings;
}

}  // namespace

std::string in_name(const Setting& setting) {
  std::string value = setting.value;
  if (setting.name == "model.init_from") {
    if (value.starts_with(kPhasePrefix)) return "after " + value.substr(kPhasePrefix.size());
    return "from " + std::filesystem::path(value).filename().string();
  }
  if (setting.name == "network.name" && value.empty()) return "no network";
  if (speaks_for_itself(setting.name)) return std::filesystem::path(value).filename().string();
  std::string last = setting.name.substr(setting.name.rfind('.') + 1);
  std::replace(last.begin(), last.end(), '_', ' ');
  return last + " " + value;
}

std::string Experiment::Phase::label() const {
  std::string text = name;
  for (const Setting& axis : axes) text += ", " + in_name(axis);
  return text;
}

void name_arms(std::vector<Experiment::Arm>& arms) {
  std::map<std::string, std::vector<size_t>> by_name;
  for (size_t i = 0; i < arms.size(); ++i) {
    Experiment::Arm& arm = arms[i];
    const bool by_label = arm.row == arm.spec.label();
    arm.name = arm.row;
    for (const Setting& axis : arm.axes) {
      if (by_label && (axis.name == "strategy.name" || axis.name == "codec.name" ||
                       axis.name == "pipeline.stages" || axis.name == "activation.codec"))
        continue;
      arm.name += ", " + in_name(axis);
    }
    by_name[arm.name].push_back(i);
  }
  for (const auto& [name, alike] : by_name) {
    if (alike.size() < 2) continue;
    std::vector<Settings> all;
    for (const size_t i : alike) all.push_back(settings_of(arms[i].spec));
    for (size_t field = 0; field < all.front().size(); ++field) {
      const auto same = [&](const Settings& other) { return other[field] == all.front()[field]; };
      if (std::all_of(all.begin(), all.end(), same)) continue;
      for (size_t k = 0; k < alike.size(); ++k) {
        const std::string more = in_name(all[k][field]);
        if (!more.empty()) arms[alike[k]].name += ", " + more;
      }
    }
  }
}

}  // namespace syncopate::lab
