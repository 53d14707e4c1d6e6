#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/sim/engine.h"
#include "syncopate/sim/profile.h"
#include "syncopate/sim/steps/crossings.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::sim {

/// A step of one rank, the exchange apart.
struct RankTime {
  double slow = 1;  ///< its seconds for one of a device of speed 1
  double forward = 0, backward = 0;
  double sleep = 0;  ///< behind the backward pass, by comm.slow
  double update = 0, data = 0, other = 0;
};

/// What the steps of a strategy are written for.
struct StepsOf {
  const spec::RunSpec& spec;
  const Profile& profile;
  std::vector<RankTime> workers{};
  double global_batch = 0;  ///< examples of all workers in a step
  // Of one stage of a pipeline: `workers` are its replicas, and `profile` knows its parameters alone.
  std::vector<int> ranks{};        ///< theirs; empty: from 0
  Crossings* crossings = nullptr;  ///< to the other stages; null: there are none
  size_t stage = 0;
};

/// Steps between which a strategy's rhythm repeats.
int64_t period_of(const spec::RunSpec& spec);

/// Gives every worker, and every server's threads, the actions of `steps` steps, as the classes of
/// parallel/ make them, after any warm-up of a codec; a mark stands before the first and behind each.
/// The workers' actors come first.
void write_steps(Engine& engine, const StepsOf& what, int64_t steps);

/// Bytes beside the model that a strategy and a codec keep on a worker.
double kept_bytes(const spec::RunSpec& spec, int64_t elements);

}  // namespace syncopate::sim
