#pragma once

#include "syncopate/optim/optimizer.h"
#include "syncopate/optim/pass.h"

namespace syncopate::optim {

/// LARS (You et al., 2017): momentum SGD whose rate for each parameter tensor is
/// lr * trust * |x| / (|g| + decay |x| + eps). The rate is inside the momentum, as in the paper. Biases and
/// norms neither decay nor have a rate of their own.
class Lars : public Optimizer {
 public:
  Lars(const OptimizerOptions& options, const tensor::FlatParams& params);
  void step(tensor::FlatParams& params, double lr, double grad_scale) override;
  std::vector<tensor::NamedTensor> state() const override { return {{"momentum", momentum_}}; }
  int64_t steps_done() const override { return steps_; }
  void set_steps_done(int64_t steps) override { steps_ = steps; }

 private:
  void step_plainly(tensor::FlatParams& params, double lr, double grad_scale);

  OptimizerOptions options_;
  std::vector<Block> blocks_;
  at::Tensor adapted_;  ///< bool [entries]
  at::Tensor momentum_;
  int64_t steps_ = 0;
};

}  // namespace syncopate::optim
