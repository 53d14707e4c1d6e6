#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncopate/comm/metering/metered.h"
#include "syncopate/parallel/mesh.h"
#include "syncopate/parallel/trace.h"
#include "syncopate/run/records/trace_file.h"

namespace syncopate::run {

/// The trace of some steps of a run, on one rank: what is computed is noted by the engine and strategy that
/// have trace(), what is exchanged by itself.
class RunTrace {
 public:
  /// Of `traced` steps of all, soon after the first ones, which warm caches up. Collective; `group` outlives
  /// it.
  RunTrace(comm::Metered& group, int64_t steps, int64_t traced);
  RunTrace(const RunTrace&) = delete;
  RunTrace& operator=(const RunTrace&) = delete;

  parallel::Trace& trace() { return trace_; }

  /// At rank 0 the text of the file, elsewhere nothing. `layout`: the ranks of each stage, by replica.
  /// `command` made it. Collective; nothing is noted any more.
  std::string gather(const parallel::Mesh& mesh, const std::vector<std::vector<int>>& layout,
                     const std::string& command);

 private:
  ClockReading clock() const;

  comm::Metered& group_;
  parallel::Trace trace_;
  ClockReading before_;
};

}  // namespace syncopate::run
