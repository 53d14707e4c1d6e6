#pragma once

#include "syncopate/sim/events/traffic.h"

namespace syncopate::sim {

/// More ranks than this are played round by round instead of message by message.
constexpr int kPlayedRanks = 64;

/// A rank comes to an operation of many; the last one plays it for all: everybody's end is known then.
void begin_in_rounds(Traffic& traffic, Operation& operation, int rank, double now);

}  // namespace syncopate::sim
