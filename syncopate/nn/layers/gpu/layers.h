#pragma once

#include "syncopate/nn/layers/layers.h"

// The functions of layers.h as autograd nodes over our kernels for GPUs and cuBLAS: hidden states in bf16,
// weights' copies in half precision as factors (tensor/half_weights.h). Gradients of parameters are summed in
// fp32 into those that the parameters have; autograd is handed none.
namespace syncopate::nn::on_gpu {

/// Whether these layers can run: on a GPU, in a program with kernels for it, with copies of the weights at
/// hand and gradients to add to.
bool can_run(const EmbeddingParams& params, const at::Tensor& ids_BL, const EmbeddingOptions& options);
bool can_run(const AttentionParams& params, const at::Tensor& x_BLD, const AttentionOptions& options);
bool can_run(const FeedForwardParams& params, const at::Tensor& x_BLD, const FeedForwardOptions& options);

at::Tensor embed(const EmbeddingParams& params, const at::Tensor& ids_BL, const at::Tensor& types_BL,
                 const EmbeddingOptions& options);
at::Tensor attend(const AttentionParams& params, const at::Tensor& x_BLD, const at::Tensor& mask_BL,
                  const AttentionOptions& options);
at::Tensor feed_forward(const FeedForwardParams& params, const at::Tensor& x_BLD,
                        const FeedForwardOptions& options);

}  // namespace syncopate::nn::on_gpu
