#pragma once

#include <functional>

#include "syncopate/parallel/step_runner.h"
#include "syncopate/train/loop.h"

namespace syncopate::train {

/// One training step of this rank, timed: batches from the loader, the rate of the schedule, the update by
/// engine and strategy. What both loops share.
class TimedStep {
 public:
  struct Request {
    int64_t step = 0;  ///< its number, from 0
    /// Whether ranks exchange their losses in this step, whatever the strategy does; empty: no.
    std::function<bool(bool last_of_epoch)> accounts{};
  };
  struct Done {
    record::StepRecord record;
    parallel::StepResult result;
    int64_t epoch = 0;
    bool last_of_epoch = false;
    int64_t own_examples = 0;
    double compute_seconds = 0;  ///< this rank's own, without loading and without waiting for others
    double own_loss() const;     ///< not a number where this rank had no examples
  };

  TimedStep(const LoopParts& parts, const LoopOptions& options);
  Done make(const Request& request);

 private:
  LoopParts parts_;
  LoopOptions options_;
  parallel::StepRunner runner_;
  double loss_ = 0;  ///< the last that was known: a rank may be without examples in a step
};

}  // namespace syncopate::train
