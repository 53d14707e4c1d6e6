#pragma once

#include <optional>
#include <string>
#include <vector>

#include "syncopate/record/record.h"

namespace syncopate::report {

/// One row of a comparison; no record: the run diverged.
struct ComparedRun {
  std::string name;  ///< empty: called by its strategy
  std::string strategy;
  int64_t workers = 1;
  std::optional<record::RunRecord> record;
};

/// Strategies side by side: time per iteration and where it goes, speed against `single`, bytes, loss,
/// quality.
std::string comparison_table(const std::vector<ComparedRun>& runs);

}  // namespace syncopate::report
