#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::nn {

/// A family's configurations by name.
template <typename Config>
class Presets {
 public:
  Presets(std::initializer_list<std::pair<std::string, Config>> all) : all_(all) {}

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, config] : all_) names.push_back(name);
    return names;
  }

  bool contains(std::string_view name) const {
    return std::any_of(all_.begin(), all_.end(), [&](const auto& each) { return each.first == name; });
  }

  /// Throws ConfigError with a suggestion.
  const Config& at(std::string_view wanted) const {
    for (const auto& [name, config] : all_) {
      if (name == wanted) return config;
    }
    throw ConfigError("unknown model \"{}\"{}", wanted, suggestion(wanted, names()));
  }

 private:
  std::vector<std::pair<std::string, Config>> all_;
};

}  // namespace syncopate::nn
