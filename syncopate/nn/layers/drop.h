#pragma once

#include <ATen/core/Tensor.h>

#include "syncopate/nn/layers/noise.h"

namespace syncopate::nn {

/// `x` after its noise: apply_noise of noise.h, by a kernel of our own on the CPU in fp32.
at::Tensor drop(const at::Tensor& x, const Noise& noise);

/// residual + drop(x, noise), both of one shape.
at::Tensor add_dropped(const at::Tensor& residual, const at::Tensor& x, const Noise& noise);

}  // namespace syncopate::nn
