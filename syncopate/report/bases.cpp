// What arms are compared with.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "syncopate/report/comparison.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

/// What such a run learns from which data: other problems are not compared with each other.
constexpr const char* kProblem[] = {"task.name", "task.data", "task.limit", "task.test_limit", "model.name"};

bool trained_something(const Comparison& of, size_t arm) {
  return std::any_of(of.runs[arm].begin(), of.runs[arm].end(), [](const RunData* run) {
    return run->done() && run->files->record->steps > 0 && run->files->record->examples > 0;
  });
}

/// How alike two arms are, by settings that are no part of how workers keep together.
int64_t likeness(const ArmResult& a, const ArmResult& b) {
  int64_t alike = 0;
  for (const auto& [name, value] : a.settings) {
    if (name.starts_with("strategy.") || name.starts_with("codec.") || name.starts_with("comm.") ||
        name == "optim.lr")
      continue;
    const auto other = std::find_if(b.settings.begin(), b.settings.end(),
                                    [&](const auto& each) { return each.first == name; });
    if (other != b.settings.end() && other->second == value) ++alike;
  }
  return alike;
}

std::string problem_of(const ArmResult& arm) {
  std::string key;
  for (const char* name : kProblem) {
    for (const auto& [setting, value] : arm.settings) {
      if (setting == name) key += setting + "=" + value + "\n";
    }
  }
  return key;
}

/// Whether the experiment names it as its baseline.
bool asked_for(const Comparison& of, const ArmResult& arm) {
  const std::string& asked = of.sweep.baseline;
  return !asked.empty() && (arm.row == asked || arm.name == asked || arm.id == asked);
}

}  // namespace

void choose_bases(Comparison& of) {
  Results& results = of.results;
  const size_t count = results.arms.size();
  of.quality_base.assign(count, Comparison::kNone);
  of.speed_base.assign(count, Comparison::kNone);
  of.candidates.clear();
  results.baseline.clear();
  for (ArmResult& arm : results.arms) arm.group = 0;

  int64_t fewest = std::numeric_limits<int64_t>::max();
  bool singles = false;
  const auto eligible = [&](size_t arm) {
    return results.arms[arm].kind == "row" && !of.barred[arm] && trained_something(of, arm);
  };
  for (size_t i = 0; i < count; ++i) {
    if (!eligible(i)) continue;
    fewest = std::min(fewest, results.arms[i].workers);
    singles = singles || results.arms[i].family == "single";
  }
  std::vector<size_t> slowest, named;  // whom speed is measured against, and who was asked for
  for (size_t i = 0; i < count; ++i) {
    const ArmResult& arm = results.arms[i];
    if (!eligible(i)) continue;
    if (singles ? arm.family == "single" : arm.workers == fewest) slowest.push_back(i);
    if (asked_for(of, arm)) named.push_back(i);
  }
  of.candidates = named.empty() ? slowest : named;
  const std::vector<size_t>& candidates = of.candidates;
  if (candidates.empty()) return;
  results.baseline = results.arms[candidates[0]].id;

  // A problem has a group of its own where it has a candidate of its own; otherwise it is compared with the
  // first, and the checks will say what is wrong with that.
  std::map<std::string, size_t> primary;
  std::map<std::string, int64_t> groups;
  for (const size_t arm : candidates) {
    const std::string problem = problem_of(results.arms[arm]);
    if (primary.emplace(problem, arm).second) groups.emplace(problem, static_cast<int64_t>(groups.size()));
  }
  for (size_t i = 0; i < count; ++i) {
    ArmResult& arm = results.arms[i];
    std::string problem = problem_of(arm);
    if (!primary.contains(problem)) problem = problem_of(results.arms[candidates[0]]);
    arm.group = groups.at(problem);
    const size_t first = primary.at(problem);
    const bool candidate = std::find(candidates.begin(), candidates.end(), i) != candidates.end();
    if (i != first) {
      of.quality_base[i] = first;
      int64_t best = likeness(arm, results.arms[first]);
      for (const size_t other : candidates) {
        if (candidate || problem_of(results.arms[other]) != problem) continue;
        if (const int64_t alike = likeness(arm, results.arms[other]); alike > best) {
          best = alike;
          of.quality_base[i] = other;
        }
      }
    }
    // Examples of another problem per second are no measure of speed.
    const auto same_problem = std::find_if(slowest.begin(), slowest.end(), [&](size_t other) {
      return problem_of(results.arms[other]) == problem;
    });
    of.speed_base[i] = same_problem == slowest.end() ? first : *same_problem;
  }
}

void note_bases(Comparison& of) {
  Results& results = of.results;
  const ArmResult* first = results.arm(results.baseline);
  if (!of.sweep.baseline.empty() && (first == nullptr || !asked_for(of, *first))) {
    results.notes.push_back(
        {.code = "baseline",
         .text = fmt::format("the baseline \"{}\" has no finished run that trained and passed its checks; "
                             "compared with {} instead",
                             of.sweep.baseline, first == nullptr ? "nothing" : first->name)});
  }
  if (first == nullptr) return;
  int64_t groups = 0;
  for (const ArmResult& arm : results.arms) groups = std::max(groups, arm.group + 1);
  if (groups > 1) {
    results.notes.push_back(
        {.code = "problems",
         .text = fmt::format("{} different problems (task, data or model): each arm is compared "
                             "with the baseline of its own",
                             groups),
         .warning = false});
  }
  const ArmResult& slow = results.arms[of.speed_base[of.candidates[0]]];
  results.notes.push_back(
      {.code = "speed-baseline",
       .text = fmt::format("Speed-up is examples per second against {} ({}), seed by seed.", slow.name,
                           workers_text(slow.workers)),
       .warning = false});
}

}  // namespace syncopate::report
