#pragma once

#include <memory>

#include "syncopate/gpu/update.h"
#include "syncopate/optim/stateful_optimizer.h"

namespace syncopate::optim {

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019), as PyTorch defines it.
class AdamW : public StatefulOptimizer {
 public:
  AdamW(const OptimizerOptions& options, const tensor::FlatParams& params);
  void step(tensor::FlatParams& params, double lr, double grad_scale) override;
  bool updates_parts(const tensor::FlatParams& params) const override;
  void step_part(tensor::FlatParams& params, double lr, double grad_scale, int64_t begin,
                 int64_t end) override;
  /// On a GPU, where the program has kernels for it.
  std::optional<double> step_clipped(tensor::FlatParams& params, double lr, double grad_scale,
                                     double limit) override;
  /// The update that `step` makes of elements begin..end-1, with `steps_done` as the number of this step.
  void update(tensor::FlatParams& params, double lr, double grad_scale, int64_t begin, int64_t end) const;

  const at::Tensor& first() const { return first_; }    ///< mean of the gradients
  const at::Tensor& second() const { return second_; }  ///< mean of their squares

 private:
  void update_plainly(tensor::FlatParams& params, double lr, double grad_scale, int64_t from,
                      int64_t to) const;

  at::Tensor first_, second_;
  std::unique_ptr<gpu::Clip> clip_;  ///< made when first needed
};

}  // namespace syncopate::optim
