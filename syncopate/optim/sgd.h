#pragma once

#include "syncopate/optim/stateful_optimizer.h"

namespace syncopate::optim {

/// Stochastic gradient descent with momentum, Nesterov's if asked; weight decay is added to the gradient, as
/// PyTorch does.
class Sgd : public StatefulOptimizer {
 public:
  Sgd(const OptimizerOptions& options, const tensor::FlatParams& params);
  void step(tensor::FlatParams& params, double lr, double grad_scale) override;
  bool updates_parts(const tensor::FlatParams& params) const override;
  void step_part(tensor::FlatParams& params, double lr, double grad_scale, int64_t begin,
                 int64_t end) override;

 private:
  double kept() const;  ///< of the momentum, in the next step
  void step_plainly(tensor::FlatParams& params, double keep, double lr, double grad_scale);

  at::Tensor momentum_;
};

}  // namespace syncopate::optim
