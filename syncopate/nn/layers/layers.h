#pragma once

#include <ATen/core/Tensor.h>

#include "syncopate/nn/activation.h"
#include "syncopate/nn/layers/noise.h"
#include "syncopate/nn/layers/packing.h"

// The pieces of a transformer encoder, each one differentiable function. On a CPU in fp32 they run on kernels
// of our own, and on a GPU in bf16 on others (gpu_layers.h); anywhere else they are the plain compositions of
// layers_plain.h, which are also what tests hold the kernels to. Letters in names: B examples, L positions, Q
// positions asked for, D width, H heads, F inner width, N rows. The CPU's kernels also compute on real tokens
// alone (packing.h); the others do not.
namespace syncopate::nn {

struct LinearParams {
  at::Tensor weight;  ///< [out, in]
  at::Tensor bias;    ///< [out]
};

struct NormParams {
  at::Tensor weight, bias;  ///< [D]
};

LinearParams linear_params(int64_t out, int64_t in);  ///< values not yet set
NormParams norm_params(int64_t width);

struct EmbeddingParams {
  at::Tensor word, position, type;  ///< [V, D], [P, D], [T, D]
  NormParams norm;
};

struct AttentionParams {
  LinearParams query, key, value, output;  ///< each [D, D]
  NormParams norm;
};

struct FeedForwardParams {
  LinearParams up;    ///< [F, D]
  LinearParams down;  ///< [D, F]
  NormParams norm;
};

struct EmbeddingOptions {
  int64_t pad_token = 0;
  double eps = 1e-12;
  Noise noise{};
  Packed packed{};  ///< of the batch: [1, N, D] comes out
};

/// dropout(norm(word + position + type)) [B, L, D]. The gradient of `word` leaves out row `pad_token`; it is
/// sparse where `word` already has a dense gradient to be added to, so that only the rows used are touched.
at::Tensor embed(const EmbeddingParams& params, const at::Tensor& ids_BL, const at::Tensor& types_BL,
                 const EmbeddingOptions& options);

struct AttentionOptions {
  int64_t heads = 1;
  double eps = 1e-12;
  bool first_only = false;  ///< compute the first position of each example alone: [B, 1, D]
  Noise probs_noise;        ///< of each head: row b Q + q, column: the position attended to
  Noise output_noise;       ///< row b Q + q
  Packed packed{};          ///< of the batch: `x` is [1, N, D], and so is the result unless first_only
};

/// norm(x + dropout(output(attention(x)))). `mask_BL` is added to the scores of each position attended to (0,
/// or hugely negative for padding); it may be undefined.
at::Tensor attend(const AttentionParams& params, const at::Tensor& x_BLD, const at::Tensor& mask_BL,
                  const AttentionOptions& options);

struct FeedForwardOptions {
  Activation activation = Activation::kGelu;
  double eps = 1e-12;
  Noise inner_noise;   ///< after the activation
  Noise output_noise;  ///< after the second product
};

/// norm(x + dropout(down(dropout(activation(up(x)))))).
at::Tensor feed_forward(const FeedForwardParams& params, const at::Tensor& x_BLD,
                        const FeedForwardOptions& options);

}  // namespace syncopate::nn
