#pragma once

#include "syncopate/run/worker.h"
#include "syncopate/run/world.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::run {

/// Trains with `spec.comm.workers` workers that are threads of this process. The first failure is thrown (as
/// run_worker throws it); a worker that does not come back from it within a moment is left behind, so that
/// the caller should end the process then. Throws ConfigError where `world` has other processes.
WorkerResult run_replicas(const spec::RunSpec& spec, const World& world, const WorkerOptions& options);

}  // namespace syncopate::run
