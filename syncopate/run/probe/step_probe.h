#pragma once

#include <functional>
#include <string>
#include <vector>

#include "syncopate/run/compute.h"
#include "syncopate/sim/profile.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::run {

struct StepProbeOptions {
  int rank = 0;                    ///< of the workers that compute at the same time
  int local_rank = 0;              ///< of those on this machine
  std::vector<int64_t> batches{};  ///< examples of a step per worker; empty: half of the spec's, it, twice it
  double seconds = 6;              ///< of steps, roughly
  std::function<void()> together{};  ///< waits until all workers are here. May be empty
  std::function<bool()> stop_requested{};
  /// Told what is measured now: so many of all parts are done. May be empty.
  std::function<void(int done, int all, const std::string& what)> progress{};
};

/// The examples of a step that a worker of this spec makes.
int64_t batch_of_worker(const spec::RunSpec& spec);

/// What a step of the spec's model costs this worker, with nothing exchanged: times at several batch sizes by
/// the very steps that a run makes, when each gradient is ready, what each layer takes, what codecs take. The
/// local costs are left to the caller. Collective where `together` is. Throws what a run would.
sim::Profile probe_step(const spec::RunSpec& spec, const ComputeSetup& compute,
                        const StepProbeOptions& options);

/// One profile of workers that measured the same at the same time: the mean of their times.
sim::Profile mean_of(const std::vector<sim::Profile>& profiles);

}  // namespace syncopate::run
