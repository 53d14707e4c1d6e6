#pragma once

#include <filesystem>
#include <functional>

#include "syncopate/lab/runner.h"
#include "syncopate/plan/advice.h"
#include "syncopate/record/record.h"

namespace syncopate::lab {

struct CheckOptions {
  std::filesystem::path folder{};  ///< gets a folder for the run
  double seconds = 15;             ///< of training, roughly
  std::function<bool()> stop_requested{};
  Runner* runner = nullptr;  ///< null: processes
};

/// The run that measures a row: a few dozen steps, with nothing else to do.
spec::RunSpec check_spec(const plan::AdviceRow& row, double seconds);

/// From the steps of such a run, those apart in which a strategy falls into its rhythm.
plan::Checked measured_of(const spec::RunSpec& spec, const std::vector<record::StepRecord>& steps);

/// Trains as the row says and fills in what was measured, or why nothing was.
void check_row(plan::AdviceRow& row, const CheckOptions& options);

}  // namespace syncopate::lab
