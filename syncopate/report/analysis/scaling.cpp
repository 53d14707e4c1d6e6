// Arms that are alike but for the number of workers.
#include <cmath>
#include <map>
#include <set>

#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

/// What stays the same while workers are added: everything but the settings that share a batch out. One
/// worker has no strategy to speak of, so its own settings are not compared.
std::string kept(const ArmResult& arm, bool strategy_too) {
  std::string key = std::to_string(arm.group);
  for (const auto& [name, value] : arm.settings) {
    if (name == "comm.workers" || name == "train.batch_size" || name == "train.global_batch" ||
        name == "train.accumulate" || name == "optim.lr" || name == "compute.threads" ||
        name == "train.steps" || name == "network.hosts")
      continue;
    if (!strategy_too &&
        (name.starts_with("strategy.") || name.starts_with("codec.") || name.starts_with("network.")))
      continue;
    key += "\n" + name + "=" + value;
  }
  return key;
}

struct Family {
  std::string name{}, alone{};  ///< alone: the key of the single worker that belongs to it
  std::vector<const ArmResult*> arms{};
};

std::vector<ScalingPoint> scaled(const Results& results, bool weak) {
  const auto size = [&](const ArmResult& arm) {
    return std::llround(weak ? arm.worker_share : arm.worker_share * static_cast<double>(arm.replicas()));
  };
  const auto usable = [](const ArmResult& arm) {
    return !arm.excluded && arm.kind == "row" && arm.family != "simulated" && arm.examples_per_s.known() &&
           std::isfinite(arm.global_batch);
  };
  // One copy of the model, whole or in stages.
  const auto alone = [](const ArmResult& arm) {
    return arm.family == "single" || (arm.stages > 1 && arm.replicas() == 1);
  };
  std::map<std::string, Family> families;
  for (const ArmResult& arm : results.arms) {
    if (!usable(arm) || alone(arm)) continue;
    const std::string batch = "\n" + std::to_string(size(arm));
    Family& family = families[kept(arm, true) + batch];
    family.name = arm.codec.empty() || arm.codec == "none" ? arm.strategy : arm.strategy + ", " + arm.codec;
    if (arm.stages > 1) family.name += ", " + stages_text(arm.stages, arm.activation_codec);
    if (!arm.on.name.empty()) family.name += " on " + network_text(arm.on);
    family.alone = kept(arm, false) + batch;
    family.arms.push_back(&arm);
  }
  std::vector<ScalingPoint> points;
  for (auto& [key, family] : families) {
    std::set<int64_t> workers;
    bool one = false;
    for (const ArmResult* arm : family.arms) {
      workers.insert(arm->workers);
      one = one || arm->replicas() == 1;
    }
    for (const ArmResult& arm : results.arms) {
      if (usable(arm) && alone(arm) && !one &&
          kept(arm, false) + "\n" + std::to_string(size(arm)) == family.alone) {
        family.arms.insert(family.arms.begin(), &arm);
        workers.insert(arm.workers);
        one = true;
      }
    }
    if (workers.size() < 2) continue;
    const ArmResult* least = family.arms.front();
    for (const ArmResult* arm : family.arms) {
      if (arm->workers < least->workers) least = arm;
    }
    for (const ArmResult* arm : family.arms) {
      points.push_back({.group = family.name,
                        .arm = arm->id,
                        .workers = arm->workers,
                        .examples_per_s = arm->examples_per_s.mean,
                        .speedup = arm->examples_per_s.mean / least->examples_per_s.mean});
    }
  }
  return points;
}

}  // namespace

void find_scaling(Comparison& of) {
  of.results.strong = scaled(of.results, false);
  of.results.weak = scaled(of.results, true);
}

}  // namespace syncopate::report
