#include "syncopate/report/advice/claims.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace syncopate::report {
namespace {

/// One run alone tells only a step in speed that is larger.
constexpr double kOneRunTells = 1.1;

}  // namespace

double tolerated_loss(const Measure& measure, double baseline) {
  return measure.percent ? 0.01 : 0.02 * std::abs(baseline);
}

Claims::Claims(const ArmGroup& group) : group_(group) {
  // Of many arms that are equal some look better: what is called better must stand beside the others.
  Arms judged;
  std::vector<double> chances;
  for (const ArmResult* arm : group.compared()) {
    if (arm == group.base() || !arm->to_base || arm->to_base->n < 2) continue;
    judged.push_back(arm);
    chances.push_back(chance_of(*arm->to_base));
  }
  const std::vector<bool> stands = stand_together(chances);
  for (size_t i = 0; i < judged.size(); ++i) {
    if (!judged[i]->to_base->better.value_or(false)) continue;
    (stands[i] ? better_ : seemingly_better_).push_back(judged[i]);
  }
}

/// The share of an arm's cores that others kept busy: on a quiet machine it could have been as much faster.
double Claims::stolen(const ArmResult& arm) const {
  if (!arm.has_flag("busy")) return 0;
  double cores = 0;
  for (const RunResult* run : group_.runs_of(arm)) cores = std::max(cores, static_cast<double>(run->cores));
  return cores > 0 ? std::min(1.0, arm.outside_load / cores) : 1;
}

bool Claims::timed(const ArmResult& arm) const { return arm.timed_fairly() && group_.slow()->timed_fairly(); }

bool Claims::faster(const ArmResult& arm) const {
  if (&arm == group_.slow() || !timed(arm)) return false;
  // One run says something of speed, if the step is large: thousands of steps are behind it.
  const double least = arm.speedup.n > 1 ? arm.speedup.low : arm.speedup.mean / kOneRunTells;
  const double quiet = 1 - stolen(*group_.slow());
  return least * quiet > 1 && arm.speedup.mean * quiet > 1 + kNoStep;
}

bool Claims::perhaps_faster(const ArmResult& arm) const {
  if (&arm == group_.slow() || faster(arm)) return false;
  return !timed(arm) || arm.speedup.mean > (1 + kNoStep) * (1 - stolen(arm));
}

bool Claims::told_apart(const ArmResult& winner, const ArmResult& arm) const {
  std::map<int64_t, double> ours;
  for (const RunResult* run : group_.runs_of(winner)) {
    if (std::isfinite(run->speedup)) ours[run->seed] = run->speedup;
  }
  const double quiet = 1 - stolen(arm);
  std::vector<double> differences;
  for (const RunResult* run : group_.runs_of(arm)) {
    const auto found = ours.find(run->seed);
    if (found != ours.end() && std::isfinite(run->speedup))
      differences.push_back(found->second - run->speedup / quiet);
  }
  if (differences.size() < 2) return winner.speedup.mean > kOneRunTells * arm.speedup.mean / quiet;
  return estimate(std::move(differences)).low > 0;
}

double Claims::loss_limit() const { return tolerated_loss(group_.measure(), group_.base()->quality.mean); }

double Claims::loss(double difference) const {
  return group_.measure().higher_is_better ? -difference : difference;
}

bool Claims::keeps_quality(const ArmResult& arm) const {
  if (!arm.to_base) return false;
  const Difference& d = *arm.to_base;
  if (d.same || &arm == group_.base()) return true;
  return d.enough && std::max(loss(d.low), loss(d.high)) <= loss_limit();
}

bool Claims::is_worse(const ArmResult& arm) const {
  return arm.to_base && arm.to_base->decided && !*arm.to_base->better;
}

bool Claims::is_better(const ArmResult& arm) const {
  return std::find(better_.begin(), better_.end(), &arm) != better_.end();
}

}  // namespace syncopate::report
