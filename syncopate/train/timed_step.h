#pragma once

#include <span>

#include "syncopate/parallel/step_runner.h"
#include "syncopate/train/loop.h"

namespace syncopate::train {

/// Not a number where it is a sum over nothing.
double mean_of(const parallel::TotalLoss& loss);

/// One training step of this rank, timed: batches from the loader, the rate of the schedule, the update by
/// engine and strategy. What both loops share.
class TimedStep {
 public:
  struct Request {
    int64_t step = 0;                                ///< its number, from 0
    std::span<const parallel::LocalLoss> earlier{};  ///< see StepHooks
    bool heeds_clock = true;                         ///< tells the others what the clock says
  };
  struct Done {
    record::StepRecord record;  ///< its loss: of the step's examples that `result` knows of
    parallel::StepResult result;
    int64_t epoch = 0;
    bool last_of_epoch = false;
    int64_t own_examples = 0;
    int64_t own_load = 0;        ///< see data::StepBatches
    double compute_seconds = 0;  ///< this rank's own, without loading and without waiting for others
    comm::Meter sent{};          ///< in this step, by this rank
    double own_loss() const;     ///< not a number where this rank had no examples
  };

  TimedStep(const LoopParts& parts, const LoopOptions& options);
  Done make(const Request& request);

 private:
  void measure_noise(const Done& done, double loss_scale, int64_t all_examples);

  LoopParts parts_;
  LoopOptions options_;
  parallel::StepRunner runner_;
};

}  // namespace syncopate::train
