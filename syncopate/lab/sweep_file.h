#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "syncopate/lab/plan.h"

namespace syncopate::lab {

/// What sweep.json says of the whole: docs/formats/experiment.md.
struct SweepHead {
  std::string began;  ///< UTC
  std::string state = "running";
};

std::string sweep_text(const Experiment& experiment, const Plan& plan, const SweepHead& head);

/// What an earlier sweep into the same folder wrote about a run, by its folder.
struct FormerRun {
  std::string state, message;
  int exit_code = 0;
  bool alone = true;
  std::string version, commit;  ///< of the program that wrote it
};
/// Empty where there is no sweep.json or it cannot be read.
std::map<std::string, FormerRun> former_runs(const std::filesystem::path& out);

}  // namespace syncopate::lab
