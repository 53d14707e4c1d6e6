#pragma once

#include <ATen/core/Tensor.h>

namespace syncopate::gpu {

/// What a convolution of `kernel` x `kernel` pixels with stride 1 sees at every pixel, a row for each: the
/// pixels around it in the order of a weight with channels last, zeros outside of the image and behind them
/// up to `width`. With few channels the convolution is then a product that reads and writes everything once,
/// which the library's own convolutions are far from.
at::Tensor patches(const at::Tensor& x_BCHW, int64_t kernel, int64_t padding, int64_t width);

}  // namespace syncopate::gpu
