#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::parallel {

/// A forward or a backward pass of one micro-batch through a stage.
struct Pass {
  bool backward = false;
  int64_t micro = 0;
  bool operator==(const Pass&) const = default;
};

/// In which order a stage makes its passes. Both make the backward passes in the order of the micro-batches,
/// so that gradients are summed as one worker sums them.
enum class Schedule {
  k1F1B,   ///< one forward, one backward: a stage keeps at most as many micro-batches as stages follow it
  kGPipe,  ///< all forward passes first
};

Schedule parse_schedule(const std::string& name);  ///< "1f1b", "gpipe"; throws ConfigError

/// Of stage number `stage` (from 0) of `stages`.
std::vector<Pass> passes_of(Schedule schedule, int stage, int stages, int64_t micro_batches);

}  // namespace syncopate::parallel
