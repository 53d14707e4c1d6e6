#pragma once

#include <ATen/core/Tensor.h>

#include "syncopate/gpu/layers.h"
#include "syncopate/nn/layers/layers.h"

// What the layers on a GPU share.
namespace syncopate::nn::on_gpu {

/// A parameter as the kernels need it: its values, their copy in half precision, and where its gradient goes.
struct Weight {
  explicit Weight(const at::Tensor& parameter);
  at::Tensor value, half, grad;
};
struct Linear {
  explicit Linear(const LinearParams& params) : weight(params.weight), bias(params.bias) {}
  Weight weight, bias;
};
struct Norm {
  explicit Norm(const NormParams& params) : weight(params.weight), shift(params.bias) {}
  Weight weight, shift;
};

/// Whether a parameter on a GPU has a copy in half precision and a gradient to add to.
bool has_copy(const at::Tensor& parameter);
bool has_copies(std::initializer_list<LinearParams> linears, const NormParams& norm);
/// Whether the noise is there for kernels to draw from, or none is asked for.
bool can_draw(const Noise& noise);
gpu::Drop drop_of(const Noise& noise);

/// drop(x) as an autograd node, for bf16 on a GPU with noise to draw from.
bool can_drop(const at::Tensor& x, const Noise& noise);
at::Tensor drop(const at::Tensor& x, const Noise& noise);

/// x W^T + bias.
at::Tensor product(const Linear& linear, const at::Tensor& x_ND);

}  // namespace syncopate::nn::on_gpu
