#pragma once

#include <string_view>

#include "syncopate/record/record.h"

// Bandwidth of collective operations as nccl-tests define it; docs/measures.md explains it.
namespace syncopate::record {

/// What the algorithm bandwidth is multiplied by to give the bus bandwidth, which can be compared with the
/// rate of a link whatever the number of ranks: all-reduce 2 (n - 1) / n; all-gather, reduce-scatter, gather
/// and scatter (n - 1) / n; broadcast, reduce, send and receive 1. With one rank nothing moves: 0. NaN for an
/// unknown name.
double bus_factor(std::string_view collective, int64_t ranks);

/// Bytes per second; NaN where no time passed.
double algorithm_bandwidth(const Collective& collective);
double bus_bandwidth(const Collective& collective, int64_t ranks);

}  // namespace syncopate::record
