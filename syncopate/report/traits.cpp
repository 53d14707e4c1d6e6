#include "syncopate/report/traits.h"

#include <algorithm>

namespace syncopate::report {
namespace {

/// A record may be of a strategy that this version does not have: then nothing, and no error.
const spec::StrategyInfo* find(std::string_view name) {
  const auto& table = spec::strategies();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const spec::StrategyInfo& info) { return info.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

bool is_strategy(std::string_view name) { return find(name) != nullptr; }

spec::Rhythm rhythm_of(std::string_view strategy) {
  const spec::StrategyInfo* info = find(strategy);
  return info == nullptr ? spec::Rhythm::kTogether : info->rhythm;
}

std::string family_of(std::string_view strategy, std::string_view codec, std::string_view kind,
                      int64_t stages) {
  if (kind == "control") return "control";
  if (stages > 1) return "pipeline";
  const spec::StrategyInfo* info = find(strategy);
  if (info != nullptr && info->one_worker) return "single";
  if (strategy.find("pipeline") != std::string_view::npos) return "pipeline";
  switch (rhythm_of(strategy)) {
    case spec::Rhythm::kFree:
      return "asynchronous";
    case spec::Rhythm::kLocal:
      return "local";
    case spec::Rhythm::kTogether:
      break;
  }
  return codec.empty() || codec == "none" ? "synchronous" : "compressed";
}

}  // namespace syncopate::report
