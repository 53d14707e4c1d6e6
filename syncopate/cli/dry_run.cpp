#include "syncopate/cli/dry_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "syncopate/base/text.h"
#include "syncopate/report/table.h"

namespace syncopate::cli {
namespace {

/// Runs of one arm and kind.
struct Group {
  std::string name;
  std::vector<std::string> seeds{}, tried{};
  int64_t runs = 0, done = 0, other_version = 0;
  double all = 0, left = 0;
  bool unknown = false;
  std::string failure{};  ///< "ddp, seed 1 cannot run: ..."
  int64_t failures = 0;

  std::string which() const {
    const std::string of_seeds =
        fmt::format("seed{} {}", seeds.size() == 1 ? "" : "s", fmt::join(seeds, ", "));
    return tried.empty() ? of_seeds : fmt::format("{}; {}", fmt::join(tried, ", "), of_seeds);
  }
};

std::string time_of(double seconds, bool unknown) {
  return unknown ? "?" : seconds <= 0 ? "-" : duration_for_people(seconds);
}

void add(std::vector<std::string>& list, const std::string& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

std::vector<Group> groups_of(const lab::Plan& plan, const std::vector<lab::Estimate>& estimates) {
  std::vector<Group> groups;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    const lab::SweepRun& run = plan.runs[i];
    const std::string key = fmt::format("{} {}", name_of(run.kind), run.arm_id());
    const auto [place, fresh] = places.emplace(key, groups.size());
    if (fresh) {
      const char* what = run.kind == lab::RunKind::kTune    ? "tuning "
                         : run.kind == lab::RunKind::kPhase ? "phase "
                                                            : "";
      groups.push_back({.name = what + run.name});
    }
    Group& group = groups[place->second];
    ++group.runs;
    add(group.seeds, std::to_string(run.seed()));
    if (!run.tried.empty()) add(group.tried, run.tried);
    const bool done = run.state == lab::RunState::kDone || run.state == lab::RunState::kDiverged;
    group.done += done ? 1 : 0;
    group.other_version += run.other_version ? 1 : 0;
    if (!estimates[i].failure.empty() && group.failures++ == 0)
      group.failure = fmt::format("{} cannot run: {}", run.label(), estimates[i].failure);
    const double seconds = estimates[i].seconds;
    group.unknown = group.unknown || (std::isnan(seconds) && !done);
    if (std::isnan(seconds)) continue;
    group.all += seconds;
    group.left += done ? 0 : seconds;
  }
  return groups;
}

/// What tuning may still add, at most.
struct Finer {
  size_t runs = 0;
  double seconds = 0;
};

Finer finer_runs(const lab::Experiment& experiment, const lab::Plan& plan,
                 const std::vector<lab::Estimate>& estimates) {
  const auto settled = [](const lab::SweepRun& run) { return run.settled; };
  if (!experiment.tune || std::all_of(plan.runs.begin(), plan.runs.end(), settled)) return {};
  const size_t each =
      2 * static_cast<size_t>(experiment.tune->refine) * std::max<size_t>(1, experiment.tune->seeds.size());
  Finer finer;
  for (const lab::Tuning& tuning : plan.tunings) {
    double longest = 0;  // they take as long as the arm's other tuning runs
    for (size_t i = 0; i < plan.runs.size(); ++i) {
      const lab::SweepRun& run = plan.runs[i];
      if (run.kind == lab::RunKind::kTune && run.arm == tuning.arm && !std::isnan(estimates[i].seconds))
        longest = std::max(longest, estimates[i].seconds);
    }
    finer.runs += each;
    finer.seconds += static_cast<double>(each) * longest;
  }
  return finer;
}

}  // namespace

std::string dry_run_table(const lab::Experiment& experiment, const lab::Plan& plan,
                          const std::vector<lab::Estimate>& estimates) {
  report::Table table({"arm", "runs", "done", "time", "left", "which"});
  Group sum{.name = "all"};
  std::string failures;
  std::vector<std::string> unknown;
  for (const Group& group : groups_of(plan, estimates)) {
    table.add({group.name, std::to_string(group.runs), std::to_string(group.done),
               time_of(group.all, group.unknown), time_of(group.left, group.unknown), group.which()});
    sum.all += group.all;
    sum.left += group.left;
    sum.done += group.done;
    sum.other_version += group.other_version;
    sum.unknown = sum.unknown || group.unknown;
    if (group.failures > 0) {
      failures += fmt::format("{}{}\n", group.failure,
                              group.failures > 1 ? fmt::format(" (and {} like it)", group.failures - 1) : "");
    } else if (group.unknown) {
      unknown.push_back(group.name);
    }
  }
  if (!unknown.empty()) failures += fmt::format("time not known: {}\n", fmt::join(unknown, "; "));
  const Finer finer = finer_runs(experiment, plan, estimates);
  std::string text = table.text() + "\n" + failures;
  text += fmt::format("{} run{}, {} done; about {} in all, {} left{}, one after another\n", plan.runs.size(),
                      plan.runs.size() == 1 ? "" : "s", sum.done, duration_for_people(sum.all),
                      duration_for_people(sum.left), sum.unknown ? ", without those that are not known" : "");
  if (finer.runs > 0) {
    text += fmt::format("tuning adds up to {} finer runs: up to {} in all, {} left\n", finer.runs,
                        duration_for_people(sum.all + finer.seconds),
                        duration_for_people(sum.left + finer.seconds));
  }
  if (sum.other_version > 0) {
    text += fmt::format("{} made by another version of the program; --again runs them again\n",
                        sum.other_version);
  }
  return text;
}

}  // namespace syncopate::cli
