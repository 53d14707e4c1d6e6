#pragma once

#include "syncopate/optim/optimizer.h"

namespace syncopate::optim {

/// Stochastic gradient descent with momentum, Nesterov's if asked; weight decay is added to the gradient, as
/// PyTorch does.
class Sgd : public Optimizer {
 public:
  Sgd(const OptimizerOptions& options, const tensor::FlatParams& params);
  void step(tensor::FlatParams& params, double lr, double grad_scale) override;
  std::vector<tensor::NamedTensor> state() const override { return {{"momentum", momentum_}}; }
  int64_t steps_done() const override { return steps_; }
  void set_steps_done(int64_t steps) override { steps_ = steps; }

 private:
  void step_plainly(tensor::FlatParams& params, double keep, double lr, double grad_scale);

  OptimizerOptions options_;
  at::Tensor momentum_;
  int64_t steps_ = 0;
};

}  // namespace syncopate::optim
