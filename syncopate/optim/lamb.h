#pragma once

#include "syncopate/optim/pass.h"
#include "syncopate/optim/stateful_optimizer.h"

namespace syncopate::optim {

/// LAMB (You et al., 2020): AdamW's update, decay included, scaled for each parameter tensor to the norm of
/// the tensor itself, so that large batches can take large steps. Biases and norms neither decay nor are
/// scaled.
class Lamb : public StatefulOptimizer {
 public:
  Lamb(const OptimizerOptions& options, const tensor::FlatParams& params);
  void step(tensor::FlatParams& params, double lr, double grad_scale) override;

 private:
  void step_plainly(tensor::FlatParams& params, double lr, double grad_scale);

  std::vector<Block> blocks_;
  at::Tensor adapted_;  ///< bool [entries]
  at::Tensor first_, second_;
};

}  // namespace syncopate::optim
