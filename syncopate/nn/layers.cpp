#include "syncopate/nn/layers.h"

#include "syncopate/nn/layers_plain.h"

namespace syncopate::nn {

at::Tensor embed(const EmbeddingParams& params, const at::Tensor& ids_BL, const at::Tensor& types_BL,
                 int64_t pad_token, double eps, const Noise& noise) {
  return plain::embed(params, ids_BL, types_BL, pad_token, eps, noise);
}

at::Tensor attend(const AttentionParams& params, const at::Tensor& x_BLD, const at::Tensor& mask_BL,
                  const AttentionOptions& options) {
  return plain::attend(params, x_BLD, mask_BL, options);
}

at::Tensor feed_forward(const FeedForwardParams& params, const at::Tensor& x_BLD,
                        const FeedForwardOptions& options) {
  return plain::feed_forward(params, x_BLD, options);
}

}  // namespace syncopate::nn
