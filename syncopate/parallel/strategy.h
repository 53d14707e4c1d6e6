#pragma once

#include <string>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/replica.h"

namespace syncopate::parallel {

class FreeRunning;

/// Decides what replicas tell each other, and when. One per rank; every rank makes the same calls.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Before the first step: all take rank 0's parameters.
  virtual void start(Replica& replica) = 0;
  /// The forward pass of a micro-batch is done and its backward pass comes next. Called once with
  /// `last_micro` in every step, also on a rank that has no examples in it. Where the update is local,
  /// `replica.count` is known by then.
  virtual void before_backward(Replica&, bool /*last_micro*/) {}
  /// Gradients (of the local sum) are in place and `replica.count` is known; leaves new parameters.
  virtual void step(Replica& replica) = 0;

  /// Whether ranks talk in step number `step` (from 0); all ranks say the same. Where they do not, the caller
  /// sends nothing either: losses are carried to the next step in which they do.
  virtual bool exchanges(int64_t /*step*/) const { return true; }
  /// The update of that step is by the mean over this rank's own examples: `replica.count` is theirs, and may
  /// be 0.
  virtual bool updates_locally(int64_t /*step*/) const { return false; }
  /// Between exchanges parameters and optimizer state may differ from rank to rank.
  virtual bool replicas_differ() const { return false; }
  /// Waits for what is on its way, so that a caller who counts bytes finds those of the last step with it.
  /// Collective; training goes on as if it had not been called.
  virtual void catch_up() {}
  /// Makes every replica's parameters those of the one model that is evaluated, saved and the result.
  /// Collective. A caller that goes on training puts back what it had.
  virtual void settle(Replica&) {}
  /// `settle` does the same for the model's buffers; else that is left to the caller.
  virtual bool settles_buffers() const { return false; }
  /// Which model that is: "all workers' own", "average of the workers", "server".
  virtual std::string settled() const { return "the workers' common model"; }
  /// What a checkpoint must hold of this rank beside the replica, to be written into in place when resuming.
  /// After `start`.
  virtual std::vector<tensor::NamedTensor> state() { return {}; }
  /// A run that resumes has written into the replica and into what `state` gave. Collective.
  virtual void resumed(Replica&) {}
  /// Nothing will be asked of this strategy any more: whoever serves it may go.
  virtual void leave() {}
  /// Where workers do not keep in step with each other; null: they do.
  virtual FreeRunning* free_running() { return nullptr; }
};

/// Every rank takes rank 0's parameters.
void take_parameters_of_rank_zero(Replica& replica, comm::Group& group);

}  // namespace syncopate::parallel
