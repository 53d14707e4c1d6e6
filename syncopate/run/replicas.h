#pragma once

#include "syncopate/run/spec.h"
#include "syncopate/run/worker.h"
#include "syncopate/run/world.h"

namespace syncopate::run {

/// Trains with `spec.comm.workers` workers that are threads of this process. The first failure is thrown (as
/// run_worker throws it); a worker that does not come back from it within a moment is left behind, so that
/// the caller should end the process then. Throws ConfigError where `world` has other processes.
WorkerResult run_replicas(const RunSpec& spec, const World& world, const WorkerOptions& options);

}  // namespace syncopate::run
