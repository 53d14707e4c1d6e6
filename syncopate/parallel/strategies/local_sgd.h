#pragma once

#include "syncopate/parallel/strategies/local_steps.h"

namespace syncopate::parallel {

/// Workers update by themselves and take the mean of their parameters every H steps (Stich, 2019); with
/// `first` they are synchronous up to there (post-local SGD: Lin et al., 2020). With a delay the mean is
/// computed behind the next steps, and what a worker has moved since then stays on top of it.
class LocalSgd : public LocalSteps {
 public:
  /// `differences`: what travels is how far a worker moved since the last mean, so that a codec may lose part
  /// of it; else the parameters themselves. See LocalSteps for the rest.
  LocalSgd(comm::Group& group, std::unique_ptr<Averager> averager, const Options& options,
           bool differences = false, std::unique_ptr<Strategy> before = nullptr);

 protected:
  Keeps keeps() const override;
  void apply(Slices slices) const override;

 private:
  bool differences_;
};

}  // namespace syncopate::parallel
