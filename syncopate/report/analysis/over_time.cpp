// Quality at equal time, and time to a target: from evaluations while runs went on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

struct Point {
  double seconds = 0, quality = kUnknown;
};

double value_in(const record::EvalRecord& eval, const std::string& measure) {
  if (measure == "loss") return eval.loss;
  const auto found = eval.measures.find(measure);
  return found == eval.measures.end() ? kUnknown : found->second;
}

/// What a run looked at while it trained: its validation split if it has one.
std::string split_of(const RunFiles& files) {
  const bool validated =
      std::any_of(files.evals.begin(), files.evals.end(),
                  [](const record::EvalRecord& eval) { return eval.split == "validation"; });
  return validated ? "validation" : "test";
}

std::vector<Point> points_of(const RunFiles& files, const std::string& measure) {
  const std::string split = split_of(files);
  std::vector<Point> points;
  for (size_t i = 0; i < files.evals.size(); ++i) {
    if (files.evals[i].split == split && i < files.eval_seconds.size())
      points.push_back({files.eval_seconds[i], value_in(files.evals[i], measure)});
  }
  return points;
}

/// Between two evaluations on a straight line; before the first nothing is known, after the last it stays.
double quality_at(const std::vector<Point>& points, double seconds) {
  // A clock's rounding must not keep the last evaluation of the run that ended then out.
  if (points.empty() || seconds < points.front().seconds * (1 - 1e-9)) return kUnknown;
  for (size_t i = 1; i < points.size(); ++i) {
    const Point &before = points[i - 1], &after = points[i];
    if (seconds >= after.seconds) continue;
    const double share = (seconds - before.seconds) / (after.seconds - before.seconds);
    return before.quality + share * (after.quality - before.quality);
  }
  return points.back().quality;
}

double time_to(const std::vector<Point>& points, double target, bool higher_is_better) {
  const auto reached = [&](double quality) {
    return higher_is_better ? quality >= target : quality <= target;
  };
  for (size_t i = 0; i < points.size(); ++i) {
    if (!reached(points[i].quality)) continue;
    if (i == 0 || !std::isfinite(points[i - 1].quality)) return points[i].seconds;
    const Point &before = points[i - 1], &after = points[i];
    const double share = (target - before.quality) / (after.quality - before.quality);
    return before.seconds + share * (after.seconds - before.seconds);
  }
  return kUnknown;
}

}  // namespace

void fill_over_time(Comparison& of) {
  Results& results = of.results;
  std::map<std::string_view, const Measure*> measures;  // by arm
  for (const ArmResult& arm : results.arms) measures.emplace(arm.id, &arm.measure);
  for (size_t i = 0; i < of.sweep.runs.size(); ++i) {
    const RunFiles& files = *of.sweep.runs[i].files;
    EvalCurve& curve = results.runs[i].evals;
    curve.split = split_of(files);
    const auto own = measures.find(results.runs[i].arm);
    const std::string& measure = own == measures.end() ? results.measure.name : own->second->name;
    for (size_t k = 0; k < files.evals.size(); ++k) {
      if (files.evals[k].split != curve.split || k >= files.eval_seconds.size()) continue;
      curve.examples.push_back(files.eval_examples[k]);
      curve.seconds.push_back(files.eval_seconds[k]);
      curve.quality.push_back(value_in(files.evals[k], measure));
    }
  }
  // The time of the fastest, of one worker or on the same network: another network is no choice.
  using Place = std::pair<int64_t, std::string>;
  const auto place_of = [](const ArmResult& arm) {
    return Place(arm.group, arm.workers == 1 ? "" : network_text(arm.on));
  };
  std::map<Place, double> soonest;
  for (const ArmResult& arm : results.arms) {
    double& time = soonest.emplace(place_of(arm), kUnknown).first->second;
    if (!arm.excluded && arm.state == "done" && arm.timing_counts())
      time = std::fmin(time, arm.train_seconds.mean);
  }
  const auto soonest_beside = [&](const ArmResult& arm) {
    const auto alone = soonest.find(Place(arm.group, ""));
    return std::fmin(soonest.at(place_of(arm)), alone == soonest.end() ? kUnknown : alone->second);
  };
  bool validated = false;
  size_t compared = 0;
  for (size_t i = 0; i < results.arms.size(); ++i) {
    ArmResult& arm = results.arms[i];
    const double seconds = soonest_beside(arm);
    const bool timed = std::isfinite(seconds) && arm.timing_counts();
    std::vector<double> at_time, to_target;
    int64_t done = 0;
    for (const RunData* run : of.runs[i]) {
      at_time.push_back(kUnknown);
      to_target.push_back(kUnknown);
      if (!run->done()) continue;
      ++done;
      validated = validated || split_of(*run->files) == "validation";
      if (timed) at_time.back() = quality_at(points_of(*run->files, arm.measure.name), seconds);
      if (results.target) {
        const bool higher = results.target->measure != "loss" && results.target->measure != "perplexity";
        to_target.back() =
            time_to(points_of(*run->files, results.target->measure), results.target->value, higher);
      }
    }
    if (done == 0) continue;
    if (Estimate estimated = estimate(std::move(at_time)); estimated.known()) {
      ++compared;
      arm.quality_at_time = QualityAtTime{.seconds = seconds, .quality = std::move(estimated)};
    }
    if (results.target) {
      TimeToTarget time{.seconds = estimate(std::move(to_target)), .of = done};
      time.reached = time.seconds.n;
      // A mean over those that got there would flatter an arm that often does not.
      if (time.reached < time.of)
        time.seconds.mean = time.seconds.sd = time.seconds.low = time.seconds.high = kUnknown;
      arm.time_to_target = std::move(time);
    }
  }
  if (compared > 1) {
    results.notes.push_back({.code = "equal-time",
                             .text = fmt::format("Quality at equal time is that of the {} split.",
                                                 validated ? "validation" : "test"),
                             .warning = false});
  }
  if (results.target) {
    results.notes.push_back({.code = "target",
                             .text = validated
                                         ? "The time to the target is that of the validation split."
                                         : "The time to the target is that of the test split: no run has a "
                                           "validation split (task.validation).",
                             .warning = false});
  }
}

}  // namespace syncopate::report
