#pragma once

#include "syncopate/record/record.h"
#include "syncopate/sim/predict.h"

namespace syncopate::sim {

/// The records of a run that was played instead of trained: steps without losses, and the result with
/// `simulated` set, the network and how its links are used. Provenance and folder are left to the caller.
struct SimulatedRun {
  std::vector<record::StepRecord> steps{};
  record::RunRecord result{};
};
SimulatedRun simulated_run(const spec::RunSpec& spec, const Scene& scene, const Prediction& prediction,
                           int64_t steps);

/// The network of a scene as a run records it; links' use where a prediction says it.
record::NetworkRecord network_record(const spec::RunSpec& spec, const Scene& scene,
                                     const Prediction& prediction);

}  // namespace syncopate::sim
