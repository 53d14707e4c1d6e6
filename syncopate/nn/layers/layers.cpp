#include "syncopate/nn/layers/layers.h"

#include <ATen/ATen.h>

#include "syncopate/nn/layers/fast/layers.h"
#include "syncopate/nn/layers/fast/support.h"
#include "syncopate/nn/layers/gpu/layers.h"
#include "syncopate/nn/layers/initialize.h"
#include "syncopate/nn/layers/layers_plain.h"

namespace syncopate::nn {

LinearParams linear_params(int64_t out, int64_t in) { return {parameter({out, in}), parameter({out})}; }

NormParams norm_params(int64_t width) { return {parameter({width}), parameter({width})}; }

at::Tensor embed(const EmbeddingParams& params, const at::Tensor& ids_BL, const at::Tensor& types_BL,
                 const EmbeddingOptions& options) {
  if (on_gpu::can_run(params, ids_BL, options)) return on_gpu::embed(params, ids_BL, types_BL, options);
  const bool run = ids_BL.numel() > 0 && fast::can_run({params.word, params.position, params.type,
                                                        params.norm.weight, params.norm.bias});
  return (run ? fast::embed : plain::embed)(params, ids_BL, types_BL, options);
}

at::Tensor attend(const AttentionParams& params, const at::Tensor& x_BLD, const at::Tensor& mask_BL,
                  const AttentionOptions& options) {
  const at::Tensor x = x_BLD.contiguous();
  if (on_gpu::can_run(params, x, options)) return on_gpu::attend(params, x, mask_BL, options);
  const bool run = fast::can_run(
      {x, params.query.weight, params.query.bias, params.key.weight, params.key.bias, params.value.weight,
       params.value.bias, params.output.weight, params.output.bias, params.norm.weight, params.norm.bias});
  return (run ? fast::attend : plain::attend)(params, x, mask_BL, options);
}

at::Tensor feed_forward(const FeedForwardParams& params, const at::Tensor& x_BLD,
                        const FeedForwardOptions& options) {
  const at::Tensor x = x_BLD.contiguous();
  if (on_gpu::can_run(params, x, options)) return on_gpu::feed_forward(params, x, options);
  const bool run = fast::can_run({x, params.up.weight, params.up.bias, params.down.weight, params.down.bias,
                                  params.norm.weight, params.norm.bias});
  return (run ? fast::feed_forward : plain::feed_forward)(params, x, options);
}

}  // namespace syncopate::nn
