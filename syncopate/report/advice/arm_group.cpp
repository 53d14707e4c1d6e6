#include "syncopate/report/advice/arm_group.h"

#include <fmt/format.h>

#include "syncopate/report/words.h"

namespace syncopate::report {

ArmGroup::ArmGroup(const Results& results, const RunsById& runs, int64_t group, const NetworkName* network)
    : results_(results), runs_(runs) {
  for (const ArmResult& arm : results.arms) {
    if (arm.group != group || arm.simulated) continue;
    if (network != nullptr && arm.workers > 1 && arm.on != *network) continue;
    all_.push_back(&arm);
    if (!arm.excluded && arm.kind != "control" && arm.quality.known() && arm.speedup.known())
      compared_.push_back(&arm);
  }
  for (const ArmResult* arm : compared_) {
    if (arm->to_base && arm->to_base->against == arm->id) base_ = arm;
  }
  if (base_ == nullptr) return;
  const ArmResult* measured = results.arm(base_->speed_against);
  slow_ = measured == nullptr ? base_ : measured;
}

std::string ArmGroup::slow_name() const { return slow_->workers == 1 ? "one worker" : slow_->name; }

std::vector<const RunResult*> ArmGroup::runs_of(const ArmResult& arm) const {
  std::vector<const RunResult*> found;
  for (const std::string& id : arm.runs) {
    if (const auto run = runs_.find(id); run != runs_.end()) found.push_back(run->second);
  }
  return found;
}

template <typename Holds>
std::vector<std::string> ArmGroup::seeds_where(const ArmResult& arm, const Holds& holds) const {
  std::vector<std::string> seeds;
  for (const RunResult* run : runs_of(arm)) {
    if (holds(*run)) seeds.push_back(std::to_string(run->seed));
  }
  return seeds;
}

std::vector<std::string> ArmGroup::diverged(const ArmResult& arm) const {
  return seeds_where(arm, [](const RunResult& run) { return run.state == "diverged"; });
}

std::vector<std::string> ArmGroup::failed(const ArmResult& arm) const {
  return seeds_where(arm,
                     [](const RunResult& run) { return run.state == "failed" || run.state == "killed"; });
}

std::vector<std::string> ArmGroup::collapsed(const ArmResult& arm) const {
  return seeds_where(arm, [](const RunResult& run) { return run.collapsed; });
}

std::string ArmGroup::trouble(const ArmResult& arm) const {
  std::vector<std::string> told;
  const auto tell = [&](const std::vector<std::string>& seeds, const char* what) {
    if (!seeds.empty()) told.push_back(fmt::format("{} {}", seeds_named(seeds), what));
  };
  tell(diverged(arm), "diverged");
  tell(failed(arm), "failed");
  tell(collapsed(arm), "collapsed");
  return joined(told, "and");
}

}  // namespace syncopate::report
