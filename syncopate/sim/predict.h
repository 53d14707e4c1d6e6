#pragma once

#include <string>
#include <vector>

#include "syncopate/network/topology.h"
#include "syncopate/sim/profile.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::sim {

/// What is known before a run: where its ranks sit and what a step costs.
struct Scene {
  network::Topology topology{};
  std::vector<int> seats{};  ///< a host for each rank: workers, then servers
  Profile profile{};
  /// All ranks compute on the one machine that the profile was measured on (the lab): then its times hold as
  /// they are for profile.workers, whatever the hosts' speeds.
  bool one_machine = false;
};

struct LinkUse {
  int from = 0, to = 0;  ///< hosts
  double bytes = 0;      ///< per step, headers apart
  double busy = 0;       ///< share of the step's time in which something was on it
};

/// A step, as a mean over the strategy's whole period (local-sgd: over `every` steps).
struct Prediction {
  double ms = 0;           ///< per iteration; where workers run free, per update of all workers together
  double compute_ms = 0;   ///< forward, backward, update
  double exchange_ms = 0;  ///< exposed
  double hidden_ms = 0;
  double examples_per_s = 0;
  double bytes_per_step = 0;  ///< sent by a worker: the mean over workers
  double memory = 0;          ///< bytes of the fullest device; 0: not known
  std::vector<LinkUse> links{};
  std::vector<double> step_ms{};  ///< of each step of a period, in order
};

/// Plays the steps of one period out, event by event, with the collectives as the backends make them. Throws
/// ConfigError for a run that could not be (RunSpec::validate).
Prediction predict(const spec::RunSpec& spec, const Scene& scene);

}  // namespace syncopate::sim
