#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "syncopate/record/record.h"

namespace syncopate::record {

/// What a run's folder holds, its model and checkpoint apart.
struct Run {
  nlohmann::ordered_json spec;         ///< every setting by its dotted name
  nlohmann::ordered_json environment;  ///< null until training starts
  std::vector<StepRecord> steps;
  std::vector<EvalRecord> evals;
  /// By rank; empty for one whose file is on another machine. NaN where a rank had no examples or was not
  /// there; shorter for one that left.
  std::vector<std::vector<double>> losses;
  std::optional<RunRecord> result;  ///< nothing until the run ends
  bool done = false;
};

/// Reads a run at any time: before its first step, while it trains, after it was killed. Until it is done,
/// the last line of a file may be unfinished and is left out. Throws DataError with file and line where a
/// file is damaged, and where the folder holds no run.
Run read_run(const std::filesystem::path& folder);

}  // namespace syncopate::record
