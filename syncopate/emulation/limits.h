#pragma once

#include "syncopate/network/topology.h"

namespace syncopate::emulation {

/// What a lab can carry, over one link and over all together: the switch moves 10 to 13 Gbit/s through one
/// core (docs/lab.md).
inline constexpr double kMostGbit = 10;

/// What all hosts send when each fills its fastest link, in Gbit/s.
double busiest_gbit(const network::Topology& topology);

/// Throws ConfigError for a network that a lab cannot be: too many hosts, a name that no machine can have,
/// more than the switch moves, with the scale that fits.
void check_can_be_emulated(const network::Topology& topology);

}  // namespace syncopate::emulation
