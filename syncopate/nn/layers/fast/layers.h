#pragma once

#include "syncopate/nn/layers/layers.h"

// The functions of layers.h as autograd nodes over our kernels and BLAS, for contiguous fp32 tensors on the
// CPU.
namespace syncopate::nn::fast {

at::Tensor embed(const EmbeddingParams& params, const at::Tensor& ids_BL, const at::Tensor& types_BL,
                 const EmbeddingOptions& options);
at::Tensor attend(const AttentionParams& params, const at::Tensor& x_BLD, const at::Tensor& mask_BL,
                  const AttentionOptions& options);
at::Tensor feed_forward(const FeedForwardParams& params, const at::Tensor& x_BLD,
                        const FeedForwardOptions& options);

}  // namespace syncopate::nn::fast
