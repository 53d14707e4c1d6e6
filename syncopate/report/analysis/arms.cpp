// Which runs belong together.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/traits.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

/// Settings that say nothing about what was trained: runs that differ in them alone are one arm.
bool says_nothing(std::string_view setting) {
  return setting == "train.seed" || setting == "train.save_every" || setting == "comm.timeout";
}

/// Settings that are not the same in all runs of the comparison, and the values of those that are.
void tell_settings_apart(Results& results, const std::vector<const RunData*>& runs) {
  if (runs.empty()) return;
  struct Seen {
    const std::string* first;
    size_t count = 0;
    bool varies = false;
  };
  std::vector<std::string_view> names;
  std::unordered_map<std::string_view, Seen> seen;
  for (const RunData* run : runs) {
    for (const auto& [name, value] : run->files->settings) {
      const auto [found, fresh] = seen.try_emplace(name, Seen{&value});
      if (fresh) names.push_back(name);
      ++found->second.count;
      found->second.varies = found->second.varies || *found->second.first != value;
    }
  }
  for (const std::string_view name : names) {
    if (says_nothing(name)) continue;
    const Seen& setting = seen.at(name);
    if (setting.varies || setting.count < runs.size()) {
      results.varies.emplace_back(name);
    } else {
      results.common.emplace_back(name, *setting.first);
    }
  }
}

Settings chosen_settings(const RunFiles& files, const std::vector<std::string>& names) {
  Settings chosen;
  for (const std::string& name : names) {
    const auto found = std::find_if(files.settings.begin(), files.settings.end(),
                                    [&](const auto& setting) { return setting.first == name; });
    if (found != files.settings.end()) chosen.push_back(*found);
  }
  return chosen;
}

/// Arms of a folder of runs: by what their settings say, seeds apart. Gives each run its arm.
void group_by_settings(std::vector<RunResult>& runs, const std::vector<RunData>& data) {
  std::map<std::string, std::string> ids;
  for (size_t i = 0; i < runs.size(); ++i) {
    std::string key;
    for (const auto& [name, value] : data[i].files->settings) {
      if (!says_nothing(name)) key += name + "=" + value + "\n";
    }
    if (key.empty()) key = data[i].folder;  // nothing is known of it
    if (runs[i].simulated) key += "simulated\n";
    const auto [found, fresh] = ids.emplace(key, fmt::format("a{}", ids.size()));
    runs[i].arm = found->second;
  }
}

std::string state_of(const std::vector<const RunData*>& runs) {
  const auto count = [&](auto holds) {
    return static_cast<size_t>(
        std::count_if(runs.begin(), runs.end(), [&](const RunData* run) { return holds(run->state); }));
  };
  const size_t done = count([](const std::string& state) { return state == "done"; });
  const size_t planned = count([](const std::string& state) { return state == "planned"; });
  if (count([](const std::string& state) { return state == "running"; }) > 0) return "running";
  if (planned > 0) return done > 0 ? "running" : "planned";
  return done > 0 ? "done" : "failed";
}

/// Phases and trials of a setting are runs too, but no arm's.
bool is_compared(const RunResult& run) { return run.kind == "row" || run.kind == "control"; }

/// Which runs come first, where arms are made of them.
std::vector<size_t> order_of(const std::vector<RunResult>& runs, bool planned) {
  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!planned) {  // nobody gave an order: the fewest workers first
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return runs[a].workers < runs[b].workers; });
  }
  return order;
}

/// Makes arms of the runs, and gives each arm its runs.
void gather_arms(Comparison& of) {
  Results& results = of.results;
  const SweepData& sweep = of.sweep;
  std::map<std::string, size_t> places;
  std::vector<std::string> again;
  const auto simulated = std::count_if(results.runs.begin(), results.runs.end(),
                                       [](const RunResult& run) { return run.simulated; });
  const bool mixed = simulated > 0 && static_cast<size_t>(simulated) < results.runs.size();
  for (const size_t i : order_of(results.runs, sweep.planned)) {
    RunResult& run = results.runs[i];
    run.settings = chosen_settings(*sweep.runs[i].files, results.varies);
    if (!is_compared(run)) continue;
    const auto [at, fresh] = places.emplace(run.arm, results.arms.size());
    if (fresh) {
      ArmResult arm;
      arm.id = run.arm;
      arm.row = run.row;
      arm.kind = run.kind;
      arm.name = sweep.planned && !run.name.empty() ? run.name : label_of(run, mixed);
      arm.axes = run.axes;
      results.arms.push_back(std::move(arm));
      of.runs.emplace_back();
      of.places.emplace_back();
    }
    ArmResult& arm = results.arms[at->second];
    // A seed that was run twice says nothing new: it counts once, and the finished one.
    std::vector<const RunData*>& members = of.runs[at->second];
    const auto twin = std::find_if(members.begin(), members.end(),
                                   [&](const RunData* other) { return other->seed == sweep.runs[i].seed; });
    if (twin != members.end()) {
      again.push_back(run.folder);
      const auto place = static_cast<size_t>(twin - members.begin());
      if (!(*twin)->done() && sweep.runs[i].done()) {
        members[place] = &sweep.runs[i];
        of.places[at->second][place] = i;
        arm.runs[place] = run.id;
      }
      continue;
    }
    members.push_back(&sweep.runs[i]);
    of.places[at->second].push_back(i);
    arm.runs.push_back(run.id);
  }
  if (!again.empty()) {
    results.notes.push_back(
        {.code = "twins",
         .text =
             fmt::format("the same settings and seed as another run, so counted once: {}", some_of(again)),
         .warning = false});
  }
}

/// What arms are, by their runs.
void describe_arms(Comparison& of) {
  Results& results = of.results;
  for (size_t i = 0; i < results.arms.size(); ++i) {
    ArmResult& arm = results.arms[i];
    arm.state = state_of(of.runs[i]);
    for (size_t k = 0; k < of.runs[i].size(); ++k) {
      const RunResult& run = results.runs[of.places[i][k]];
      if (arm.settings.empty()) arm.settings = run.settings;
      if (!arm.strategy.empty() || run.strategy.empty()) continue;
      arm.strategy = run.strategy;
      arm.codec = run.codec;
      arm.workers = run.workers;
      arm.stages = run.stages;
      arm.activation_codec = run.activation_codec;
    }
    arm.family = family_of(arm.strategy, arm.codec, arm.kind, arm.stages);
    for (const TuningData& tuning : of.sweep.tunings) {
      if (tuning.arm == arm.id) arm.tuning = tuning.tuning;
    }
  }
}

}  // namespace

void make_runs_and_arms(Comparison& of) {
  Results& results = of.results;
  const SweepData& sweep = of.sweep;
  results.title = sweep.title;
  results.file = sweep.file;
  results.state = sweep.state;
  results.target = sweep.target;
  results.notes = sweep.notes;
  results.axes = sweep.axes;
  results.omitted_curves = sweep.omitted_curves;
  results.advice_check = sweep.attached.advice;
  results.placements = sweep.attached.placements;
  for (const RunData& run : sweep.runs) results.runs.push_back(result_of(run));
  if (!sweep.planned) group_by_settings(results.runs, sweep.runs);
  std::vector<const RunData*> all;
  for (size_t i = 0; i < results.runs.size(); ++i) {
    if (is_compared(results.runs[i]) && !sweep.runs[i].files->settings.empty()) all.push_back(&sweep.runs[i]);
  }
  tell_settings_apart(results, all);
  gather_arms(of);
  describe_arms(of);
  if (!sweep.planned) name_arms(results);
  for (size_t i = 0; i < results.arms.size(); ++i) {
    for (const size_t place : of.places[i]) results.runs[place].name = results.arms[i].name;
  }
}

}  // namespace syncopate::report
