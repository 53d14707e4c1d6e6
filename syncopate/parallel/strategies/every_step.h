#pragma once

#include <memory>

#include "syncopate/parallel/averager.h"
#include "syncopate/parallel/strategy.h"

namespace syncopate::parallel {

/// Gradients are brought together after the backward pass of every step, then every replica makes the same
/// update.
class EveryStep : public Strategy {
 public:
  struct Options {
    bool whole = false;  ///< one call over the flat gradient instead of one per parameter
  };

  /// `group` must outlive the strategy.
  EveryStep(comm::Group& group, std::unique_ptr<Averager> averager, Options options);
  void start(Replica& replica) override;
  void before_backward(Replica& replica, const StepContext& context, bool last_micro) override;
  Update step(Replica& replica, const StepContext& context) override;
  std::vector<StateTensor> state() override { return averager_->state(); }

 private:
  comm::Group& group_;
  std::unique_ptr<Averager> averager_;
  Options options_;
};

/// One replica alone: nothing to tell.
class Single : public Strategy {
 public:
  void start(Replica&) override {}
  Update step(Replica& replica, const StepContext& context) override { return replica.apply(context); }
};

}  // namespace syncopate::parallel
