#pragma once

#include "syncopate/network/topology.h"

namespace syncopate::emulation {

/// What one link of a lab can carry: the switch moves 10 to 13 Gbit/s through one core (docs/lab.md).
inline constexpr double kMostGbit = 10;

/// Throws ConfigError, with the scale that fits, for a network that a lab cannot be.
void check_can_be_emulated(const network::Topology& topology);

}  // namespace syncopate::emulation
