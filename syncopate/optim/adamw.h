#pragma once

#include "syncopate/optim/optimizer.h"

namespace syncopate::optim {

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019), as PyTorch defines it.
class AdamW : public Optimizer {
 public:
  AdamW(const OptimizerOptions& options, const tensor::FlatParams& params);
  void step(tensor::FlatParams& params, double lr, double grad_scale) override;
  std::vector<tensor::NamedTensor> state() const override {
    return {{"exp_avg", first_}, {"exp_avg_sq", second_}};
  }
  int64_t steps_done() const override { return steps_; }
  void set_steps_done(int64_t steps) override { steps_ = steps; }

 private:
  void step_plainly(tensor::FlatParams& params, double lr, double grad_scale);

  OptimizerOptions options_;
  at::Tensor first_, second_;
  int64_t steps_ = 0;
};

}  // namespace syncopate::optim
