#pragma once

#include "syncopate/plan/plan.h"

namespace syncopate::plan {

struct Choice {
  Shape shape{};
  Problem problem{};
  Found found{};
  /// What it was chosen by: played out with up to 16 devices and a profile, else the cost that was found.
  double judged_s = 0;
};

/// The best of all shapes that the request leaves open: stages, replicas, micro-batches and codings, each
/// with its best layout. Throws ConfigError where there is none.
Choice choose(const Request& request);

/// Bytes of each device; 0: not known.
std::vector<double> device_memory(const Request& request);

/// The fewest devices that hold the model and a batch, over all shapes; 0: memory is not known.
int fewest_devices(const Request& request);

/// What the fastest device that holds the model takes alone for the same batch; 0: none does.
double one_device_cost(const Request& request);

/// The mean cost of layouts in which hosts stand in shuffled order, so that devices of one host stay
/// together; pairs and the order of stages are the best.
double region_blind_cost(const Problem& problem, const network::Topology& topology, int count, uint64_t seed);

}  // namespace syncopate::plan
