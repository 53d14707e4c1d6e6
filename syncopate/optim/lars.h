#pragma once

#include "syncopate/optim/pass.h"
#include "syncopate/optim/stateful_optimizer.h"

namespace syncopate::optim {

/// LARS (You et al., 2017): momentum SGD whose rate for each parameter tensor is
/// lr * trust * |x| / (|g| + decay |x| + eps). The rate is inside the momentum, as in the paper. Biases and
/// norms neither decay nor have a rate of their own.
class Lars : public StatefulOptimizer {
 public:
  Lars(const OptimizerOptions& options, const tensor::FlatParams& params);
  void step(tensor::FlatParams& params, double lr, double grad_scale) override;

 private:
  void step_plainly(tensor::FlatParams& params, double lr, double grad_scale);

  std::vector<Block> blocks_;
  at::Tensor adapted_;  ///< bool [entries]
  at::Tensor momentum_;
};

}  // namespace syncopate::optim
