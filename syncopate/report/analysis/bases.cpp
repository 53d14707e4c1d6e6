// What arms are compared with.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/traits.h"
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
        name.starts_with("network.") || name == "optim.lr")
      continue;
    const auto other = std::find_if(b.settings.begin(), b.settings.end(),
                                    [&](const auto& each) { return each.first == name; });
    if (other != b.settings.end() && other->second == value) ++alike;
  }
  return alike;
}

/// Simulations are a problem of their own: they are compared with each other alone.
std::string problem_of(const ArmResult& arm) {
  std::string key = arm.simulated ? "simulated\n" : "";
  for (const char* name : kProblem) {
    for (const auto& [setting, value] : arm.settings) {
      if (setting == name) key += setting + "=" + value + "\n";
    }
  }
  return key;
}

/// One copy of the model, whole or in stages.
bool is_single(const ArmResult& arm) { return family_of(arm.strategy, arm.codec, arm.kind) == "single"; }

/// Whether the experiment names it as its baseline.
bool asked_for(const Comparison& of, const ArmResult& arm) {
  const std::string& asked = of.sweep.baseline;
  return !asked.empty() && (arm.row == asked || arm.name == asked || arm.id == asked);
}

/// Whom others may be compared with, of those that were measured or of those that were simulated.
struct Choice {
  std::vector<size_t> slowest{}, named{};  ///< whom speed is measured against, and who was asked for
};

Choice choose_among(const Comparison& of, bool simulated) {
  const Results& results = of.results;
  const size_t count = results.arms.size();
  int64_t fewest = std::numeric_limits<int64_t>::max();
  bool singles = false, whole = false;
  const auto eligible = [&](size_t arm) {
    return results.arms[arm].kind == "row" && results.arms[arm].simulated == simulated && !of.barred[arm] &&
           trained_something(of, arm);
  };
  for (size_t i = 0; i < count; ++i) {
    if (!eligible(i)) continue;
    fewest = std::min(fewest, results.arms[i].workers);
    singles = singles || is_single(results.arms[i]);
    whole = whole || (is_single(results.arms[i]) && results.arms[i].stages == 1);
  }
  Choice choice;
  for (size_t i = 0; i < count; ++i) {
    const ArmResult& arm = results.arms[i];
    if (!eligible(i)) continue;
    // One worker, or one pipeline where there is none.
    const bool slow = singles ? is_single(arm) && (!whole || arm.stages == 1) : arm.workers == fewest;
    if (slow) choice.slowest.push_back(i);
    if (asked_for(of, arm)) choice.named.push_back(i);
  }
  return choice;
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
  std::vector<size_t> slowest;
  for (const bool simulated : {false, true}) {
    const Choice choice = choose_among(of, simulated);
    const std::vector<size_t>& chosen = choice.named.empty() ? choice.slowest : choice.named;
    of.candidates.insert(of.candidates.end(), chosen.begin(), chosen.end());
    slowest.insert(slowest.end(), choice.slowest.begin(), choice.slowest.end());
  }
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
    if (!primary.contains(problem)) {
      if (arm.simulated != results.arms[candidates[0]].simulated) {  // nothing of its kind
        arm.group = groups.emplace(problem, static_cast<int64_t>(groups.size())).first->second;
        continue;
      }
      problem = problem_of(results.arms[candidates[0]]);
    }
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
    // Examples of another problem per second are no measure of speed, and those on another network hardly.
    const auto fits = [&](bool network_too, bool stages_too) {
      return std::find_if(slowest.begin(), slowest.end(), [&](size_t other) {
        return problem_of(results.arms[other]) == problem &&
               (!network_too || same_network(arm, results.arms[other])) &&
               (!stages_too || arm.stages == results.arms[other].stages);
      });
    };
    auto best = slowest.end();
    for (const auto& [network_too, stages_too] :
         {std::pair(true, true), {true, false}, {false, true}, {false, false}}) {
      if (best == slowest.end()) best = fits(network_too, stages_too);
    }
    of.speed_base[i] = best == slowest.end() ? first : *best;
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
  for (const ArmResult& arm : results.arms) {
    if (arm.simulated == first->simulated) groups = std::max(groups, arm.group + 1);
  }
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
       .text = fmt::format(
           "Speed-up is examples per second against {} ({}), seed by seed.", slow.name,
           slow.stages > 1 ? "one pipeline of " + stages_text(slow.stages, "") : workers_text(slow.workers)),
       .warning = false});
}

}  // namespace syncopate::report
