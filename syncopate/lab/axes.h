#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/spec/run_spec.h"

// Settings and axes of an experiment file, and the specs that they make.
namespace syncopate::lab {

struct Setting {
  std::string name;   ///< dotted
  std::string value;  ///< as text, in the one form that Fields::text_of gives
  bool operator==(const Setting&) const = default;
};
using Settings = std::vector<Setting>;

/// A setting and the values that it takes in turn.
struct Axis {
  std::string name;  ///< dotted
  std::vector<std::string> values;
};
using Axes = std::vector<Axis>;

/// Of a table: keys are flags or dotted names, nested tables are dotted names. Throw ConfigError for an
/// unknown name, a bad value, and an axis that is empty or lists a value twice.
Settings read_settings(const nlohmann::ordered_json& table);
Axes read_axes(const nlohmann::ordered_json& table);
/// "lr=0.1"; where `axes` has that setting, one value or several ("0.1,0.2") in the place of the axis's.
void override_axes(Axes& axes, const Setting& setting);

/// The setting with its dotted name and its value as text_of gives it; throws ConfigError.
Setting canonical(const std::string& name, const std::string& value);
std::string dotted(const std::string& name);

const std::string* find(const Settings& settings, const std::string& name);
const Axis* find(const Axes& axes, const std::string& name);

/// Which settings somebody heeded, and why others did not.
class Heed {
 public:
  void note(const std::string& setting, const std::optional<std::string>& why_not);
  /// Why nobody heeds it; none: somebody does, or nobody was asked.
  std::optional<std::string> nobody(const std::string& setting) const;

 private:
  std::map<std::string, std::string> without_;
  std::map<std::string, bool> heeded_;
};

/// What a row or a phase is made of, each layer over those before it.
struct Layers {
  Settings shared;  ///< [settings]
  Settings own;     ///< its own: holds against an axis of the file
  Axes axes;
  Settings last;                        ///< --set
  std::vector<std::string> own_axes{};  ///< those of `axes` that it lists itself
};

struct Combination {
  spec::RunSpec spec;  ///< complete; what it does not heed has its default
  Settings axes;       ///< values of those axes that it heeds
};

/// How many combinations there are before those that are alike become one.
double count_combinations(const Axes& axes);

/// Each combination of the axes, the last axis fastest; those that differ in nothing that they heed are one.
/// Settings and axes of its own that no combination heeds are refused; what others do not heed is told to
/// `heed`. Throws ConfigError for a spec that no run could have.
std::vector<Combination> combinations(const Layers& layers, Heed& heed);

}  // namespace syncopate::lab
