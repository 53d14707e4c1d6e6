#pragma once

#include "syncopate/nn/layers/layers.h"

// The same functions as layers.h from ATen's operations: any device, any floating type, double backward.
namespace syncopate::nn::plain {

at::Tensor embed(const EmbeddingParams& params, const at::Tensor& ids_BL, const at::Tensor& types_BL,
                 const EmbeddingOptions& options);
at::Tensor attend(const AttentionParams& params, const at::Tensor& x_BLD, const at::Tensor& mask_BL,
                  const AttentionOptions& options);
at::Tensor feed_forward(const FeedForwardParams& params, const at::Tensor& x_BLD,
                        const FeedForwardOptions& options);

}  // namespace syncopate::nn::plain
