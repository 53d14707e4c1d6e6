#include "syncopate/cli/dry_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

#include "syncopate/base/text.h"
#include "syncopate/report/table.h"

namespace syncopate::cli {
namespace {

/// Runs of one arm and kind.
struct Group {
  std::string name;
  std::vector<std::string> runs;  ///< what tells them apart: seeds, or rates tried
  int64_t done = 0, failed = 0, other_version = 0;
  double all = 0, left = 0;
  bool unknown = false;
  std::string failure{};
};

std::string time_of(double seconds, bool unknown) {
  return unknown ? "?" : seconds <= 0 ? "-" : duration_for_people(seconds);
}

std::vector<Group> groups_of(const lab::Plan& plan, const std::vector<lab::Estimate>& estimates) {
  std::vector<Group> groups;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    const lab::SweepRun& run = plan.runs[i];
    const std::string key = fmt::format("{} {}", name_of(run.kind), run.arm_id());
    const auto [place, fresh] = places.emplace(key, groups.size());
    if (fresh) {
      const bool plain = run.kind == lab::RunKind::kRow || run.kind == lab::RunKind::kControl;
      groups.push_back(
          {.name = plain ? run.name : (run.kind == lab::RunKind::kTune ? "tuning " : "phase ") + run.name,
           .runs = {}});
    }
    Group& group = groups[place->second];
    group.runs.push_back(run.kind == lab::RunKind::kTune ? fmt::format("{} seed {}", run.tried, run.seed())
                                                         : fmt::format("seed {}", run.seed()));
    const bool done = run.state == lab::RunState::kDone || run.state == lab::RunState::kDiverged;
    group.done += done ? 1 : 0;
    group.other_version += run.other_version ? 1 : 0;
    const double seconds = estimates[i].seconds;
    if (group.failure.empty()) group.failure = estimates[i].failure;
    if (std::isnan(seconds)) {
      group.unknown = group.unknown || !done;
      continue;
    }
    group.all += seconds;
    if (!done) group.left += seconds;
  }
  return groups;
}

}  // namespace

std::string dry_run_table(const lab::Experiment& experiment, const lab::Plan& plan,
                          const std::vector<lab::Estimate>& estimates) {
  const std::vector<Group> groups = groups_of(plan, estimates);
  report::Table table({"arm", "runs", "done", "time", "left"});
  double all = 0, left = 0;
  int64_t done = 0, other = 0;
  bool unknown = false;
  std::string text;
  for (const Group& group : groups) {
    table.add({group.name, std::to_string(group.runs.size()), std::to_string(group.done),
               time_of(group.all, group.unknown), time_of(group.left, group.unknown)});
    all += group.all;
    left += group.left;
    done += group.done;
    other += group.other_version;
    unknown = unknown || group.unknown;
  }
  text += table.text() + "\n";
  for (const Group& group : groups) text += fmt::format("{}: {}\n", group.name, fmt::join(group.runs, ", "));
  text += "\n";
  for (const Group& group : groups) {
    if (!group.failure.empty()) text += fmt::format("{} cannot run: {}\n", group.name, group.failure);
  }
  text += fmt::format("{} run{}, {} done; about {} in all, {} left{}, one after another\n", plan.runs.size(),
                      plan.runs.size() == 1 ? "" : "s", done, duration_for_people(all),
                      duration_for_people(left), unknown ? ", without those that are not known" : "");
  if (other > 0)
    text += fmt::format("{} made by another version of the program; --again runs them again\n", other);
  if (experiment.tune && experiment.tune->refine > 0) {
    const auto seeds = std::max<size_t>(1, experiment.tune->seeds.size());
    text += fmt::format("tuning adds up to {} finer runs\n",
                        2 * static_cast<size_t>(experiment.tune->refine) * seeds * plan.tunings.size());
  }
  return text;
}

}  // namespace syncopate::cli
