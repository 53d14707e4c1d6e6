#include "syncopate/lab/axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/spec/effect.h"
#include "syncopate/spec/recorded.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::lab {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value, const std::string& name) {
  if (value.is_string()) return value;
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_integer()) return fmt::format("{}", value.get<int64_t>());
  if (value.is_number()) return fmt::format("{}", value.get<double>());
  throw ConfigError("{} must be a text, a number or true/false", name);
}

/// Calls `take(dotted key, value)` for each entry of a table and of those in it.
template <typename Take>
void each_entry(const Json& table, const std::string& prefix, const Take& take) {
  if (!table.is_object()) throw ConfigError("it must be a table");
  for (const auto& [key, value] : table.items()) {
    if (value.is_object()) {
      each_entry(value, prefix + key + ".", take);
    } else {
      take(prefix + key, value);
    }
  }
}

void require_values(const Axis& axis) {
  if (axis.values.empty()) throw ConfigError("{} has no values; list some or leave it out", axis.name);
  std::set<std::string> seen;
  for (const std::string& value : axis.values) {
    if (!seen.insert(value).second) throw ConfigError("{} lists {} twice", axis.name, value);
  }
}

/// Why the strategy leaves no choice of a setting: it has the default alone.
std::optional<std::string> no_choice(const spec::RunSpec& spec, const std::string& name) {
  const spec::StrategyInfo& info = spec::strategy_info(spec.strategy.name);
  if (name == "comm.workers" && info.one_worker) return fmt::format("{} has one worker", info.name);
  if (name == "codec.name" && !info.takes_codec) return fmt::format("{} takes no codec", info.name);
  return std::nullopt;
}

/// What the strategy cannot use is for other rows, unless the row itself chose both. What was dropped.
std::set<std::string> fit_to_strategy(spec::RunSpec& spec, const Settings& own) {
  std::set<std::string> dropped;
  const std::map<std::string, bool> used{{"comm.workers", spec.comm.workers != 1},
                                         {"codec.name", spec.codec.name != "none"}};
  for (const auto& [name, given] : used) {
    const bool chose_both = find(own, "strategy.name") != nullptr && find(own, name) != nullptr;
    if (!given || chose_both || !no_choice(spec, name)) continue;
    spec::set_to_defaults(spec, {name});
    dropped.insert(name);
  }
  return dropped;
}

class Maker {
 public:
  Maker(const Layers& layers, Heed& heed) : layers_(layers), heed_(heed) {}

  Combination make(const Settings& axis_values) {
    Combination made;
    const Fields fields = made.spec.fields();
    for (const Settings* layer : {&layers_.shared, &layers_.own, &axis_values, &layers_.last}) {
      for (const Setting& setting : *layer) fields.set(setting.name, setting.value);
    }
    std::vector<std::string> chosen;
    for (const Settings* layer : {&layers_.own, &axis_values, &layers_.last}) {
      for (const Setting& setting : *layer) chosen.push_back(setting.name);
    }
    spec::prefer_given(made.spec, chosen);
    made.spec.complete();
    const auto dropped = fit_to_strategy(made.spec, layers_.own);
    std::vector<std::string> unheeded;
    const auto why_not = [&](const std::string& name) {
      if (dropped.contains(name)) return no_choice(made.spec, name);
      const auto why = spec::no_effect(made.spec, name);
      if (why) unheeded.push_back(name);
      return why;
    };
    for (const Setting& setting : layers_.shared) heed_.note(setting.name, why_not(setting.name));
    for (const Setting& setting : layers_.own) own_heed_.note(setting.name, why_not(setting.name));
    for (const Setting& setting : layers_.last) heed_.note(setting.name, why_not(setting.name));
    for (const Setting& setting : axis_values) {
      const auto forced = no_choice(made.spec, setting.name);
      const auto why = forced ? forced : why_not(setting.name);
      heed_.note(setting.name, why);
      own_heed_.note(setting.name, why);
      if (!why) made.axes.push_back(setting);
    }
    spec::set_to_defaults(made.spec, unheeded);
    made.spec.validate();
    return made;
  }

  void require_own() const {
    for (const Setting& setting : layers_.own) {
      if (const auto why = own_heed_.nobody(setting.name)) throw ConfigError("{}; leave it out", *why);
    }
    for (const std::string& name : layers_.own_axes) {
      const auto why = own_heed_.nobody(name);
      if (!why) continue;
      const bool names_it = why->find(name) != std::string::npos;
      throw ConfigError("axes: {}{}; leave it out", names_it ? "" : name + ": ", *why);
    }
  }

 private:
  const Layers& layers_;
  Heed& heed_;
  Heed own_heed_;
};

std::string in_words(const Settings& values) {
  std::vector<std::string> parts;
  for (const Setting& setting : values) parts.push_back(fmt::format("{} = {}", setting.name, setting.value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Setting canonical(const std::string& name, const std::string& value) {
  spec::RunSpec scratch;
  const Fields fields = scratch.fields();
  const Fields::Field& field = fields.set(name, value);
  return {field.name, Fields::text_of(field)};
}

std::string dotted(const std::string& name) {
  spec::RunSpec scratch;
  const Fields fields = scratch.fields();
  return fields.find(name).name;
}

const std::string* find(const Settings& settings, const std::string& name) {
  for (const Setting& setting : settings) {
    if (setting.name == name) return &setting.value;
  }
  return nullptr;
}

const Axis* find(const Axes& axes, const std::string& name) {
  for (const Axis& axis : axes) {
    if (axis.name == name) return &axis;
  }
  return nullptr;
}

Settings read_settings(const Json& table) {
  Settings settings;
  each_entry(table, "", [&](const std::string& name, const Json& value) {
    settings.push_back(canonical(name, text_of(value, name)));
    const auto same = [&](const Setting& other) { return other.name == settings.back().name; };
    if (std::count_if(settings.begin(), settings.end(), same) > 1)
      throw ConfigError("{} is given twice", settings.back().name);
  });
  return settings;
}

Axes read_axes(const Json& table) {
  Axes axes;
  each_entry(table, "", [&](const std::string& name, const Json& values) {
    Axis axis{dotted(name), {}};
    if (!values.is_array()) throw ConfigError("axes: {} must be a list of values: {} = [1, 2]", name, name);
    for (const Json& value : values) axis.values.push_back(canonical(name, text_of(value, name)).value);
    require_values(axis);
    if (find(axes, axis.name) != nullptr) throw ConfigError("axes: {} is given twice", axis.name);
    axes.push_back(std::move(axis));
  });
  return axes;
}

void override_axes(Axes& axes, const Setting& setting) {
  const std::string name = dotted(setting.name);
  for (Axis& axis : axes) {
    if (axis.name != name) continue;
    axis.values.clear();
    for (const std::string_view value : split(setting.value, ','))
      axis.values.push_back(canonical(name, std::string(trim(value))).value);
    require_values(axis);
  }
}

void Heed::note(const std::string& setting, const std::optional<std::string>& why_not) {
  bool& heeded = heeded_[setting];
  heeded = heeded || !why_not;
  if (why_not) without_[setting] = *why_not;
}

std::optional<std::string> Heed::nobody(const std::string& setting) const {
  const auto found = heeded_.find(setting);
  if (found == heeded_.end() || found->second) return std::nullopt;
  return without_.at(setting);
}

double count_combinations(const Axes& axes) {
  double count = 1;
  for (const Axis& axis : axes) count *= static_cast<double>(axis.values.size());
  return count;
}

std::vector<Combination> combinations(const Layers& layers, Heed& heed) {
  Maker maker(layers, heed);
  std::vector<Combination> made;
  std::set<std::string> seen;
  std::vector<size_t> at(layers.axes.size(), 0);
  for (bool more = true; more;) {
    Settings values;
    for (size_t i = 0; i < at.size(); ++i)
      values.push_back({layers.axes[i].name, layers.axes[i].values[at[i]]});
    try {
      Combination one = maker.make(values);
      if (seen.insert(one.spec.fields().to_json().dump()).second) made.push_back(std::move(one));
    } catch (const ConfigError& error) {
      if (values.empty()) throw;
      throw ConfigError("with {}: {}", in_words(values), error.what());
    }
    more = false;
    for (size_t i = at.size(); i-- > 0 && !more;) {
      more = ++at[i] < layers.axes[i].values.size();
      if (!more) at[i] = 0;
    }
  }
  maker.require_own();
  return made;
}

}  // namespace syncopate::lab
