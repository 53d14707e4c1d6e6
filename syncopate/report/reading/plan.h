#pragma once

#include <filesystem>
#include <string>

#include "syncopate/report/reading/read_sweep.h"

namespace syncopate::report {

/// What an experiment's folder says about its runs, before any of them is read: by the text of its sweep.json
/// (docs/formats/experiment.md). Throws DataError where that is none.
SweepData planned_sweep(const std::filesystem::path& folder, const std::string& text);

/// The same of a folder of runs, or of one run's. Other folders in it are named in a note.
SweepData found_runs(const std::filesystem::path& folder);

}  // namespace syncopate::report
