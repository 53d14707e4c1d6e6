#pragma once

#include <ATen/core/Tensor.h>

#include "syncopate/tensor/precision.h"

// The matrix products of layers. On a CPU in bf16 they are made by tiles of our own from fp32 tensors: both
// sides are rounded, sums and result are fp32. In any other case they are libtorch's.
namespace syncopate::nn {

/// a b, of [M, K] and [K, N].
at::Tensor product(const at::Tensor& a, const at::Tensor& b, tensor::Precision precision);
/// bias + a b, with the same bias [N] in each row.
at::Tensor product(const at::Tensor& bias_N, const at::Tensor& a, const at::Tensor& b,
                   tensor::Precision precision);
/// c = a b, and c += a b. The rows of c are contiguous.
void product_into(at::Tensor c, const at::Tensor& a, const at::Tensor& b, tensor::Precision precision);
void add_product(at::Tensor c, const at::Tensor& a, const at::Tensor& b, tensor::Precision precision);

/// x w^T + bias in the precision of this thread's region, differentiable: x [.., I], w [O, I]; the bias may
/// be undefined.
at::Tensor project(const at::Tensor& x, const at::Tensor& weight_OI, const at::Tensor& bias_O);
/// The same with a weight [I, O].
at::Tensor project_input_first(const at::Tensor& x, const at::Tensor& weight_IO, const at::Tensor& bias_O);

}  // namespace syncopate::nn
