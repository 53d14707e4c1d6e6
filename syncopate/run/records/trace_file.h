#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/trace.h"

// A trace of a few steps as one file, in the JSON format that Perfetto and Chrome's tracing read.
namespace syncopate::run {

/// How a rank's clock stood against rank 0's at one moment.
struct ClockReading {
  double at = 0;      ///< on the rank's own clock
  double ahead = 0;   ///< what must be added to its clock to have rank 0's
  double within = 0;  ///< at most so far off: half of the shortest round trip; 0: they have one clock
};

/// Reads this rank's clock against rank 0's: ranks of one machine (those with the same id) have one clock,
/// others make a few round trips to rank 0, as NTP does, and believe the shortest. Collective.
ClockReading compare_clocks(comm::Group& workers, const std::string& machine,
                            const std::function<double()>& clock);

/// What one rank has to tell.
struct RankTrace {
  int rank = 0;
  int stage = -1, replica = 0;     ///< stage: from 0; -1: it held the whole model
  std::vector<int> stage_ranks{};  ///< by stage, of its replica
  ClockReading before{}, after{};
  std::vector<parallel::Trace::Event> events{};
  std::vector<parallel::Trace::Message> messages{};

  double to_common(double time) const;  ///< from its clock to rank 0's, by both readings
};

/// At rank 0 every rank's, elsewhere nothing. Collective.
std::vector<RankTrace> gather_traces(comm::Group& workers, const RankTrace& mine);

/// The file's text. `command` made it.
std::string trace_json(const std::vector<RankTrace>& ranks, const std::string& command);

/// Throws ConfigError where a file of that name cannot be written: told before a run, not after it.
void require_trace_place(const std::filesystem::path& file);

}  // namespace syncopate::run
