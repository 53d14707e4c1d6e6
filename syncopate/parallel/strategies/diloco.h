#pragma once

#include "syncopate/optim/outer.h"
#include "syncopate/parallel/strategies/local_steps.h"

namespace syncopate::parallel {

/// DiLoCo: every H steps the mean of how far workers moved is the gradient of an outer optimizer, whose
/// result all take (Douillard et al., 2023). In fragments, with a delay and mixing it is Streaming DiLoCo
/// (2025). A rate of 1 without momentum is Local SGD.
class DiLoCo : public LocalSteps {
 public:
  struct OuterRound {
    optim::OuterOptions outer;
    double mixing = 0;  ///< share of a worker's own values that it keeps when the result arrives
  };
  /// Throws ConfigError. See LocalSteps for the rest.
  DiLoCo(comm::Group& group, std::unique_ptr<Averager> averager, const Options& options,
         const OuterRound& round);

 protected:
  Keeps keeps() const override;
  std::string model_name() const override;
  bool exchange_makes_equal() const override { return mixing_ == 0; }
  void apply(Slices slices) const override;

 private:
  optim::Outer outer_;
  double mixing_;
};

}  // namespace syncopate::parallel
