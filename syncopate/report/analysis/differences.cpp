// Differences in quality between arms, seed by seed.
#include <algorithm>
#include <cmath>

#include "syncopate/report/analysis/comparison.h"

namespace syncopate::report {

Difference quality_difference(const Measure& measure, const std::vector<const RunResult*>& ours,
                              const std::vector<const RunResult*>& theirs) {
  std::vector<double> differences;
  int64_t tested = 0;
  for (const RunResult* run : ours) {
    for (const RunResult* twin : theirs) {
      if (twin->seed != run->seed || !std::isfinite(twin->quality) || !std::isfinite(run->quality)) continue;
      differences.push_back(run->quality - twin->quality);
      tested = std::max({tested, run->tested, twin->tested});
    }
  }
  // A score of right answers moves by one example at least; a loss or a perplexity by anything.
  double step = 0;
  if (tested > 0 && measure.higher_is_better)
    step = (measure.percent ? 1.0 : 100.0) / static_cast<double>(tested);
  return paired_difference(differences, measure.higher_is_better, step);
}

namespace {

/// The one of a group's candidates that all of the group are judged by: the first, of several single workers
/// the best. kNone: none passed its checks.
size_t judge_of(const Comparison& of, int64_t group) {
  size_t judge = Comparison::kNone;
  for (const size_t candidate : of.candidates) {
    const ArmResult& arm = of.results.arms[candidate];
    if (arm.group != group || arm.excluded || !arm.quality.known()) continue;
    if (judge == Comparison::kNone) {
      judge = candidate;
      continue;
    }
    const ArmResult& best = of.results.arms[judge];
    const bool alone = arm.workers == 1 && best.workers == 1;
    const double gained = arm.quality.mean - best.quality.mean;
    if (alone && (arm.measure.higher_is_better ? gained > 0 : gained < 0)) judge = candidate;
  }
  return judge;
}

}  // namespace

void compare_quality(Comparison& of) {
  std::vector<ArmResult>& arms = of.results.arms;
  const auto runs_of = [&](size_t arm) {
    std::vector<const RunResult*> runs;
    for (const size_t place : of.places[arm]) runs.push_back(&of.results.runs[place]);
    return runs;
  };
  const auto difference = [&](size_t arm, size_t base) {
    Difference result;
    if (arms[arm].measure.name == arms[base].measure.name)
      result = quality_difference(arms[arm].measure, runs_of(arm), runs_of(base));
    result.against = arms[base].id;
    return result;
  };
  std::vector<size_t> judges;
  for (size_t i = 0; i < arms.size(); ++i) {
    ArmResult& arm = arms[i];
    if (!arm.quality.known()) continue;
    while (judges.size() <= static_cast<size_t>(arm.group))
      judges.push_back(judge_of(of, static_cast<int64_t>(judges.size())));
    if (const size_t judge = judges[static_cast<size_t>(arm.group)]; judge != Comparison::kNone)
      arm.to_base = difference(i, judge);
    if (of.quality_base[i] == Comparison::kNone) continue;
    const bool other_updates = arm.has_flag("other-batch") || arm.has_flag("other-updates");
    const size_t control = other_updates ? of.control_of(i) : Comparison::kNone;
    const size_t base = control == Comparison::kNone ? of.quality_base[i] : control;
    if (!arms[base].excluded) arm.difference = difference(i, base);
  }
}

}  // namespace syncopate::report
