#pragma once

#include <functional>
#include <span>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/engine.h"
#include "syncopate/parallel/strategy.h"

namespace syncopate::parallel {

/// Makes optimizer steps that all ranks make together: gradients by the engine, losses summed over ranks
/// behind the backward pass, the update by the strategy. Everything given must outlive it.
class Lockstep {
 public:
  struct StepHooks {
    std::function<void(const char* phase)> phase{};  ///< may be empty
    /// Asked once, in a step in which ranks talk: does this rank want all to stop after it? May be empty.
    std::function<bool()> stop{};
    std::function<bool()> time_is_up{};  ///< likewise; what rank 0 says counts
    bool talk = false;  ///< exchange the losses in this step even if the strategy would not; alike on all
  };
  struct Outcome {
    LocalLoss mine;             ///< of this rank in this step
    double sum = 0, count = 0;  ///< over all ranks since they last talked, else this rank's of this step
    bool talked = false;
    bool stop = false;  ///< some rank asked
    bool time_is_up = false;
    double exchange_seconds = 0;
  };

  Lockstep(Replica& replica, Engine& engine, Strategy& strategy, comm::Group& group)
      : replica_(replica), engine_(engine), strategy_(strategy), group_(group) {}

  /// `replica.step` and `replica.lr` are set. Throws DivergedError when the loss or the gradient is no
  /// number: on every rank where they talk, else on the rank that saw it.
  Outcome step(std::span<const tensor::Batch> micro, uint64_t noise_key, const StepHooks& hooks);

 private:
  Replica& replica_;
  Engine& engine_;
  Strategy& strategy_;
  comm::Group& group_;
  LocalLoss carried_;  ///< not yet told to the others
};

}  // namespace syncopate::parallel
