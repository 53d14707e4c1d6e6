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

}  // namespace

void choose_bases(Comparison& of) {
  Results& results = of.results;
  const size_t count = results.arms.size();
  of.quality_base.assign(count, Comparison::kNone);
  of.speed_base.assign(count, Comparison::kNone);

  int64_t fewest = std::numeric_limits<int64_t>::max();
  bool singles = false;
  const auto eligible = [&](size_t arm) {
    return results.arms[arm].kind == "row" && trained_something(of, arm);
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
    const std::string& asked = of.sweep.baseline;
    if (!asked.empty() && (arm.row == asked || arm.name == asked || arm.id == asked)) named.push_back(i);
  }
  if (!of.sweep.baseline.empty() && named.empty()) {
    results.notes.push_back(
        {.code = "baseline",
         .text =
             fmt::format("the baseline \"{}\" has no finished run that trained; compared "
                         "with {} instead",
                         of.sweep.baseline, slowest.empty() ? "nothing" : results.arms[slowest[0]].name)});
  }
  const std::vector<size_t>& candidates = named.empty() ? slowest : named;
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
    for (const size_t other : slowest) {
      if (problem_of(results.arms[other]) == problem) {
        of.speed_base[i] = other;
        break;
      }
    }
    if (of.speed_base[i] == Comparison::kNone && !slowest.empty()) of.speed_base[i] = slowest[0];
  }
  if (groups.size() > 1) {
    results.notes.push_back(
        {.code = "problems",
         .text = fmt::format("{} different problems (task, data or model): each arm is compared "
                             "with the baseline of its own",
                             groups.size()),
         .warning = false});
  }
  const ArmResult& slow = results.arms[slowest.empty() ? candidates[0] : slowest[0]];
  results.notes.push_back(
      {.code = "speed-baseline",
       .text = fmt::format("Speed-up is examples per second against {} ({}), seed by seed.", slow.name,
                           workers_text(slow.workers)),
       .warning = false});
}

}  // namespace syncopate::report
