#pragma once

#include <string>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/replica.h"
#include "syncopate/parallel/state.h"
#include "syncopate/parallel/step.h"

namespace syncopate::parallel {

/// What is constant about a strategy.
struct Traits {
  /// Between exchanges parameters and optimizer state may differ from rank to rank.
  bool replicas_differ = false;
  /// The same of optimizer state alone.
  bool optimizers_differ = false;
  /// Every rank counts optimizer steps, and scales its loss, by itself.
  bool counts_apart = false;
};

/// The one model that is evaluated, saved and the result.
struct Settled {
  std::string model = "the workers' common model";  ///< which it is, for the record
  bool buffers = false;  ///< the model's buffers were settled too; else that is left to the caller
};

/// Decides what replicas tell each other, and when. One per rank; every rank makes the same calls. A strategy
/// whose workers do not keep in step is a FreeRunning.
class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual Traits traits() const { return {}; }

  /// Before the first step: all take rank 0's parameters.
  virtual void start(Replica& replica) = 0;
  /// The forward pass of a micro-batch is done and its backward pass comes next. Called once with
  /// `last_micro` in every step, also on a rank that has no examples in it. `context.count` is known by then
  /// where the update is local, else it is not.
  virtual void before_backward(Replica&, const StepContext&, bool /*last_micro*/) {}
  /// Gradients (of the local sum) are in place; leaves new parameters.
  virtual Update step(Replica& replica, const StepContext& context) = 0;

  /// Whether ranks talk in step number `step` (from 0); all ranks say the same. Where they do not, the caller
  /// sends nothing either: losses are carried to the next step in which they do.
  virtual bool exchanges(int64_t /*step*/) const { return true; }
  /// The update of that step is by the mean over this rank's own examples: `StepContext::count` is theirs,
  /// and may be 0.
  virtual bool updates_locally(int64_t /*step*/) const { return false; }
  /// Waits for exchanges in flight, so that a caller who counts bytes finds those of the last step with it.
  /// Collective; training goes on as if it had not been called.
  virtual void wait_for_exchanges() {}
  /// Makes every replica's parameters those of the one model. Collective. A caller that goes on training puts
  /// back what it had.
  virtual Settled settle(Replica&) { return {}; }
  /// What a checkpoint must hold beside the replica. After `start`.
  virtual std::vector<StateTensor> state() { return {}; }
  /// A run that resumes has written into the replica and into what `state` gave. Collective.
  virtual void resumed(Replica&) {}
  /// Before that, where it resumes on another number of ranks: what is a rank's own is as `start` left it.
  /// Throws ConfigError, on every rank, where the run cannot go on so.
  virtual void resized(int /*ranks_before*/) {}
  /// Nothing will be asked of this strategy any more: whoever serves it may go.
  virtual void leave() {}
};

/// Every rank takes rank 0's parameters.
void take_parameters_of_rank_zero(Replica& replica, comm::Group& group);
/// From here on the gradients lie where the group sums them best. Collective.
void keep_gradients_in(comm::Group& group, tensor::FlatParams& params);

}  // namespace syncopate::parallel
