#pragma once

#include <ATen/core/Tensor.h>

namespace syncopate::gpu {

/// Images of so few channels that a row below holds what a kernel of 3 x 3 pixels sees of them.
constexpr int64_t kPatchWidth = 32, kPatchSide = 3;
constexpr bool takes_patches(int64_t channels) {
  return channels >= 1 && channels * kPatchSide * kPatchSide <= kPatchWidth;
}

/// [pixels, kPatchWidth] in bf16: what a convolution of 3 x 3 pixels with stride 1 sees at every pixel, in
/// the order of a weight with channels last; zeros outside of the image and at the end of a row. The
/// convolution is then a product that reads and writes everything once, which the library's own are far from
/// with so few channels. Images are fp32 or bf16 and may lie as they like.
at::Tensor patches(const at::Tensor& x_BCHW);

}  // namespace syncopate::gpu
