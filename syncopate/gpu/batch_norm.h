#pragma once

#include <ATen/core/Tensor.h>

// Batch norm with what comes after it, for images in bf16 with channels last: the library's own kernels read
// and write everything twice as often.
namespace syncopate::gpu {

struct BatchNormed {
  at::Tensor out;          ///< as the input
  at::Tensor stats_C2;     ///< mean, 1 / deviation
  at::Tensor let_through;  ///< a bit where relu did, where something was added before it; else undefined
};
/// relu(norm(x) + added), each of the last two where asked for; updates the running statistics, where there
/// are any, by `momentum`. `x_RC` has a row for each pixel.
BatchNormed batch_norm(const at::Tensor& x_RC, const at::Tensor& weight_C, const at::Tensor& bias_C,
                       const at::Tensor& added_RC, bool relu, const at::Tensor& running_mean_C,
                       const at::Tensor& running_var_C, double momentum, double eps);

struct BatchNormGrads {
  at::Tensor x_RC;
  at::Tensor added_RC;  ///< undefined where nothing was added
};
/// Adds to the gradients of weight and bias. Of `made` the output is not looked at. The gradient of the
/// output is the sum of both; the second may be undefined.
BatchNormGrads batch_norm_grads(const at::Tensor& grad_RC, const at::Tensor& other_grad_RC,
                                const at::Tensor& x_RC, const BatchNormed& made, const at::Tensor& weight_C,
                                const at::Tensor& bias_C, bool added, bool relu,
                                const at::Tensor& weight_grad_C, const at::Tensor& bias_grad_C);

/// grad += laid, of a convolution's weight: fp32 as it lies, and bf16 with channels last, maybe with more
/// channels.
void add_laid(const at::Tensor& grad_OIKK, const at::Tensor& laid_OIKK);

}  // namespace syncopate::gpu
