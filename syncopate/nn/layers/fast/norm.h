#pragma once

#include <ATen/core/Tensor.h>

#include "syncopate/nn/layers/noise.h"

namespace syncopate::nn::fast {

/// What dropout, residual and norm leave for the backward pass.
struct Normed {
  at::Tensor out_ND;
  at::Tensor stats_N2;
};

/// norm(noise(dense + bias) + residual). `dense_ND` is overwritten by the sum before the norm. Rows of
/// `residual` are `residual_stride` apart.
Normed norm_sum(const at::Tensor& dense_ND, const at::Tensor& bias_D, const at::Tensor& residual,
                int64_t residual_stride, const at::Tensor& weight_D, const at::Tensor& shift_D, double eps,
                const Noise& noise);

struct NormSumGrads {
  at::Tensor sum_ND;    ///< of the residual
  at::Tensor dense_ND;  ///< of the dense product; the same tensor without noise
  at::Tensor weight_D, shift_D, bias_D;
};

NormSumGrads norm_sum_grads(const at::Tensor& grad_out_ND, const at::Tensor& sum_ND,
                            const at::Tensor& stats_N2, const at::Tensor& weight_D, const Noise& noise);

}  // namespace syncopate::nn::fast
