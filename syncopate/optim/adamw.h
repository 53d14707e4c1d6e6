#pragma once

#include "syncopate/optim/optimizer.h"

namespace syncopate::optim {

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019), as PyTorch defines it.
class AdamW : public Optimizer {
 public:
  AdamW(const OptimizerOptions& options, const tensor::FlatParams& params);
  void step(tensor::FlatParams& params, double lr, double grad_scale) override;
  /// The update that `step` makes of elements begin..end-1, with `steps_done` as the number of this step.
  void update(tensor::FlatParams& params, double lr, double grad_scale, int64_t begin, int64_t end) const;

  const OptimizerOptions& options() const { return options_; }
  const at::Tensor& first() const { return first_; }    ///< mean of the gradients
  const at::Tensor& second() const { return second_; }  ///< mean of their squares
  std::vector<tensor::NamedTensor> state() const override {
    return {{"exp_avg", first_}, {"exp_avg_sq", second_}};
  }
  int64_t steps_done() const override { return steps_; }
  void set_steps_done(int64_t steps) override { steps_ = steps; }

 private:
  void update_plainly(tensor::FlatParams& params, double lr, double grad_scale, int64_t from,
                      int64_t to) const;

  OptimizerOptions options_;
  at::Tensor first_, second_;
  int64_t steps_ = 0;
};

}  // namespace syncopate::optim
