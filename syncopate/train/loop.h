#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "syncopate/comm/metering/metered.h"
#include "syncopate/data/loader.h"
#include "syncopate/optim/schedule.h"
#include "syncopate/parallel/engine.h"
#include "syncopate/parallel/mesh.h"
#include "syncopate/parallel/noise_scale.h"
#include "syncopate/parallel/strategies/free_running.h"
#include "syncopate/parallel/strategy.h"
#include "syncopate/train/balance.h"
#include "syncopate/train/control.h"
#include "syncopate/train/listener.h"

namespace syncopate::train {

struct LoopOptions {
  int64_t steps = 1;  ///< optimizer steps in all
  // Where workers run free, their sections end at these; 0: at the end of every epoch.
  int64_t eval_every = 0;  ///< steps
  int64_t save_every = 0;  ///< likewise
  /// Where workers run free, each of their updates is a step here; the schedule counts so many as one.
  int64_t updates_per_step = 1;
  bool broadcast_buffers = false;  ///< every step begins with rank 0's buffers (batch norms' statistics)
  uint64_t seed = 0;
  Balance* balance = nullptr;                   ///< null: every worker has the same share of a batch
  parallel::NoiseScale* noise_scale = nullptr;  ///< null: not measured
};

/// What a loop works with; all of it must outlive the loop.
struct LoopParts {
  parallel::Replica& replica;
  parallel::Engine& engine;
  parallel::Strategy& strategy;
  parallel::Mesh mesh;
  const comm::Metered& meter;  ///< counts what this rank sends
  data::Loader& loader;
  const optim::Schedule& schedule;
  Listener& listener;
  const Control& control;

  /// This rank's, now.
  parallel::Wishes wishes(bool with_clock = true) const {
    return {.stop = listener.stop_requested(),
            .time_is_up = with_clock && control.time_is_up(),
            .save = with_clock && control.save_is_due()};
  }
};

/// What happened between two moments at which a run can be evaluated and saved.
struct Advance {
  int64_t done = 0;           ///< steps of the run so far
  parallel::Wishes wishes{};  ///< of all ranks
  bool epoch_ended = false;
  int64_t epoch = 0;
  double loss = 0, count = 0;  ///< sums over the steps whose losses became known
  double seconds = 0;
  comm::Meter sent{};  ///< by this rank
};

/// Makes the steps of a run. Workers that keep in step come to such a moment after every step; those that run
/// free work in sections, between which all hold the same parameters.
class Loop {
 public:
  virtual ~Loop() = default;
  /// From step number `step` (from 0) to the next such moment. Collective.
  virtual Advance advance(int64_t step) = 0;
  /// Between two steps: tells all ranks the losses of steps since they last talked, ends exchanges that are
  /// in flight and hands every step so far to the listener. Before an evaluation or a checkpoint, which count
  /// every rank's examples; sends nothing where there is nothing to tell. Gives what that adds to the last
  /// Advance. Collective.
  virtual Advance bring_together() { return {}; }
  /// By worker: how many updates it made, those counted that are no more; empty where all make every step.
  virtual const std::vector<int64_t>& updates() const;
  virtual void restore_updates(std::vector<int64_t> /*updates*/) {}
  /// By worker: how stale its updates were; empty where none can be. Collective.
  virtual std::vector<std::vector<int64_t>> staleness() { return {}; }
};

using MakeLoop = std::function<std::unique_ptr<Loop>(const LoopParts&, const LoopOptions&)>;
/// Workers that make every step together, or each its own but at the same time.
std::unique_ptr<Loop> lockstep_loop(const LoopParts& parts, const LoopOptions& options);
/// Workers that take the next mini-batch when they are ready. `strategy` is that of the parts.
MakeLoop free_loop(parallel::FreeRunning& strategy);

}  // namespace syncopate::train
