#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace syncopate::nn {

/// Sums a tensor over all ranks, in place; every rank calls it in the same order.
using SumOverRanks = std::function<void(at::Tensor&)>;

struct BatchNormParams {
  at::Tensor weight, bias;               ///< [C], trained
  at::Tensor running_mean, running_var;  ///< [C], what evaluation uses; updated in training
};

struct BatchNormOptions {
  bool training = false;
  bool again = false;     ///< a forward pass made once more: the running statistics stay as they are
  double momentum = 0.1;  ///< how much of the running statistics each batch replaces
  double eps = 1e-5;
  SumOverRanks sum = {};  ///< when set, training uses the statistics of all ranks together
};

/// Each channel of `x_BCHW` brought to mean 0 and deviation 1, then times weight plus bias. In training by
/// the statistics of this batch, or with `sum` of the batches of all ranks as if they were one: ranks may
/// differ in size, and some may be empty. Both passes then talk to the other ranks.
at::Tensor batch_norm(const at::Tensor& x_BCHW, const BatchNormParams& params,
                      const BatchNormOptions& options);
/// relu(batch_norm(x) + added); `added_BCHW` may be undefined.
at::Tensor batch_norm_relu(const at::Tensor& x_BCHW, const BatchNormParams& params,
                           const BatchNormOptions& options, const at::Tensor& added_BCHW = {});

/// One tensor for two readers. On a GPU autograd does not add up their gradients: the layer that made it
/// does, on the way.
struct Twice {
  at::Tensor one, other;
};
/// batch_norm_relu for what two layers read.
Twice batch_norm_relu_twice(const at::Tensor& x_BCHW, const BatchNormParams& params,
                            const BatchNormOptions& options, const at::Tensor& added_BCHW = {});

/// Whether images may lie as they like for `convolve`: else channels last is faster.
bool reads_any_layout(const at::Tensor& x_BCHW, const at::Tensor& weight_OIKK);
/// at::conv2d without a bias. On a GPU in bf16 from the weight's copy in half precision, with its gradient
/// added to the one that it has.
at::Tensor convolve(const at::Tensor& x_BCHW, const at::Tensor& weight_OIKK, int64_t stride, int64_t padding);

}  // namespace syncopate::nn
