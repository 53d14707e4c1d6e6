#pragma once

#include <string>
#include <vector>

#include "syncopate/network/topology.h"
#include "syncopate/sim/profile.h"
#include "syncopate/sim/stages.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::sim {

/// What is known before a run: where its ranks sit and what a step costs.
struct Scene {
  network::Topology topology{};
  std::vector<int> seats{};  ///< a host for each rank: workers, then servers
  Profile profile{};
  /// All ranks compute on the one machine that the profile was measured on (the lab), whatever the hosts'
  /// speeds. Else each has one such machine to itself, times its host's speed (sim/measured_for.h).
  bool one_machine = false;
  /// What the stages of a run really cost, waiting for cores included; empty: as the profile says.
  std::vector<StageCost> stages{};
};

struct LinkUse {
  int from = 0, to = 0;  ///< hosts
  double bytes = 0;      ///< per step, headers apart
  double busy = 0;       ///< share of the step's time in which something was on it
};

/// A step, as a mean over the strategy's whole period (local-sgd: over `every` steps).
struct Prediction {
  // Of rank 0; where workers run free, the mean over all their updates: the fast make more of them.
  double ms = 0;           ///< per iteration, or update
  double compute_ms = 0;   ///< forward, backward, update and what a step costs beside these
  double exchange_ms = 0;  ///< exposed
  double data_ms = 0;      ///< waiting for the loader; with compute and exchange this is all of it
  double hidden_ms = 0;
  double forward_ms = 0, backward_ms = 0, update_ms = 0;  ///< of compute; what servers update is not in it
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
