#pragma once

#include "syncopate/optim/optimizer.h"
#include "syncopate/optim/pass.h"

namespace syncopate::optim {

/// LAMB (You et al., 2020): AdamW's update, decay included, scaled for each parameter tensor to the norm of
/// the tensor itself, so that large batches can take large steps. Biases and norms neither decay nor are
/// scaled.
class Lamb : public Optimizer {
 public:
  Lamb(const OptimizerOptions& options, const tensor::FlatParams& params);
  void step(tensor::FlatParams& params, double lr, double grad_scale) override;
  std::vector<tensor::NamedTensor> state() const override {
    return {{"exp_avg", first_}, {"exp_avg_sq", second_}};
  }
  int64_t steps_done() const override { return steps_; }
  void set_steps_done(int64_t steps) override { steps_ = steps; }

 private:
  void step_plainly(tensor::FlatParams& params, double lr, double grad_scale);

  OptimizerOptions options_;
  std::vector<Block> blocks_;
  at::Tensor adapted_;  ///< bool [entries]
  at::Tensor first_, second_;
  int64_t steps_ = 0;
};

}  // namespace syncopate::optim
