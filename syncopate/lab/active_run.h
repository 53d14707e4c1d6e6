#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/base/clock.h"
#include "syncopate/lab/runner.h"

namespace syncopate::lab {

/// A run of the sweep that goes on now.
struct ActiveRun {
  size_t index;  ///< in the plan
  std::unique_ptr<RunInProgress> process;
  std::vector<int> cores;  ///< of its own; empty: any
  Stopwatch clock{};
  /// Its steps when they were first and last heard of, and when that was.
  RunInProgress::Steps first{}, last{};
  double first_at = 0, last_at = 0;

  void listen();
  std::string progress() const;  ///< ", step 12/40"; empty: not known
  /// By its steps since the first; none: too few are known.
  std::optional<double> seconds_left() const;
};

/// Where a run may start beside those that go on.
struct Place {
  bool free = false;         ///< it may start now
  std::vector<int> cores{};  ///< that it gets; empty: any
  size_t need = 0;           ///< cores that it keeps busy
  bool shares = false;       ///< another may run beside it and leave its timing alone
};

/// `timed`: it may only run beside others where each has cores of its own.
Place place_for(const spec::RunSpec& spec, bool timed, int jobs, const std::vector<int>& cores,
                const std::vector<ActiveRun>& active);

}  // namespace syncopate::lab
