#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "syncopate/base/progress.h"
#include "syncopate/lab/plan.h"
#include "syncopate/lab/runner.h"

namespace syncopate::lab {

struct SweepOptions {
  int jobs = 1;        ///< runs at the same time, at most
  bool again = false;  ///< run again what another version of the program made
  std::vector<int> cores = own_cores();
  std::function<bool()> stop_requested = [] { return false; };
  std::function<bool()> pause_requested = [] { return false; };  ///< true once for each request
  std::function<void(const std::string&)> say = [](const std::string&) {};
  Progress::Style progress = Progress::Style::kNone;
};

struct SweepResult {
  Plan plan;
  /// 0: all rows are done or diverged; 130: it was stopped; else that of the first run that failed.
  int exit_code = 0;
};

/// Runs the phases, then the tuning, then the rows, seed by seed, each in a folder of its own below `out`. A
/// run that is there with the same settings, data and start is not repeated, an unfinished one goes on. A run
/// that fails, diverges or is killed is noted and the others go on; what starts from it fails with it.
/// sweep.json in `out` says at any time how it stands.
///
/// Tuning runs and phases go side by side, `jobs` at a time. Rows, whose timing is compared, do so only where
/// each has cores of its own, and are marked.
SweepResult sweep(const Experiment& experiment, const std::filesystem::path& out, const SweepOptions& options,
                  Runner& runner);

/// The plan with what is done already in `out`, which stays as it is.
Plan survey(const Experiment& experiment, const std::filesystem::path& out, bool again);

/// Cores that a run keeps busy, of `all` there are.
int64_t cores_for(const spec::RunSpec& spec, int64_t all);

}  // namespace syncopate::lab
