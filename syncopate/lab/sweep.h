#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/lab/experiment.h"
#include "syncopate/record/record.h"

namespace syncopate::lab {

struct SweepRow {
  std::string name;  ///< as the experiment calls it; may be empty
  spec::RunSpec spec;
  std::optional<record::RunRecord> record;  ///< none: the run diverged
  bool reused = false;                      ///< found done in the folder
};

struct SweepResult {
  std::vector<SweepRow> rows;  ///< without phases
  int exit_code = 0;           ///< of the run that stopped the sweep; its own words are on standard error
};

/// Runs the phases and then the rows one after another, each in a process of its own and a folder of its own
/// under `out`. A row whose folder is done with the same settings is not run again; one that was interrupted
/// continues. A row that diverges is noted and the sweep goes on; any other failure, and a phase that
/// diverges, ends it.
SweepResult sweep(const Experiment& experiment, const std::filesystem::path& out,
                  const std::function<void(const std::string&)>& say);

}  // namespace syncopate::lab
