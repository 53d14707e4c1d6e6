#pragma once

#include "syncopate/sim/events/traffic.h"

namespace syncopate::sim {

/// More ranks than this are played round by round instead of message by message.
constexpr int kPlayedRanks = 64;

/// A rank reaches a collective operation of more than kPlayedRanks ranks. When the last one has come, this
/// works out round by round when each rank is through.
void begin_in_rounds(Traffic& traffic, Operation& operation, int rank, double now);

}  // namespace syncopate::sim
