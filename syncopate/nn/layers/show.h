#pragma once

#include <ATen/core/Tensor.h>

namespace syncopate::nn {

/// Images of bytes as a network reads them, float32, where they are: each is moved up and left by the first
/// two of its view's numbers and then mirrored where the third is not 0; what comes in from outside is black.
/// `levels_CL` has what each byte becomes (tensor::image_levels). Bit for bit what data::ImageDataset paints.
at::Tensor show(const at::Tensor& bytes_BCHW, const at::Tensor& views_B3, const at::Tensor& levels_CL);

}  // namespace syncopate::nn
