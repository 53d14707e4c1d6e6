#pragma once

#include "syncopate/nn/layers/batch_norm.h"

// batch_norm.h's functions by our kernels for GPUs, for images in bf16 with channels last; see layers.h
// beside this.
namespace syncopate::nn::on_gpu {

bool can_norm(const at::Tensor& x_BCHW, const BatchNormParams& params, const BatchNormOptions& options);
/// relu(batch_norm(x) + added), each of both where asked for.
Twice batch_norm(const at::Tensor& x_BCHW, const BatchNormParams& params, const BatchNormOptions& options,
                 const at::Tensor& added_BCHW, bool relu);

bool can_convolve(const at::Tensor& x_BCHW, const at::Tensor& weight_OIKK);
/// Whether images may lie as they like for `convolve` with such a weight: they have few channels and need no
/// gradient.
bool reads_any_layout(const at::Tensor& x_BCHW, const at::Tensor& weight_OIKK);
at::Tensor convolve(const at::Tensor& x_BCHW, const at::Tensor& weight_OIKK, int64_t stride, int64_t padding);

}  // namespace syncopate::nn::on_gpu
