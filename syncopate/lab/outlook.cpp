#include "syncopate/lab/outlook.h"

#include <cmath>

namespace syncopate::lab {

void Outlook::took(const SweepRun& run, double seconds) {
  if (!std::isfinite(seconds)) return;
  for (Mean* mean : {&by_cost_[run.cost], &by_kind_[name_of(run.kind)], &all_}) {
    mean->sum += seconds;
    ++mean->count;
  }
}

std::optional<double> Outlook::expected(const SweepRun& run) const {
  const auto find = [](const std::map<std::string, Mean>& means, const std::string& key) {
    const auto found = means.find(key);
    return found == means.end() ? nullptr : &found->second;
  };
  const Mean* mean = find(by_cost_, run.cost);
  if (mean == nullptr) mean = find(by_kind_, name_of(run.kind));
  if (mean == nullptr && all_.count > 0) mean = &all_;
  if (mean == nullptr) return std::nullopt;
  return mean->sum / mean->count;
}

}  // namespace syncopate::lab
