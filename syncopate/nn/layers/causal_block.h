#pragma once

#include <ATen/core/Tensor.h>

#include "syncopate/nn/layers/layers.h"

namespace syncopate::nn {

/// A block of GPT-2: norms before each part; weights are [in, out].
struct CausalBlockParams {
  NormParams norm_1;
  LinearParams qkv, attended;  ///< [D, 3D], [D, D]
  NormParams norm_2;
  LinearParams up, down;  ///< [D, F], [F, D]
};

struct CausalBlockOptions {
  int64_t heads = 1;
  double eps = 1e-5;
  Activation activation = Activation::kGeluTanh;
  bool causal = true;
  Noise probs_noise, attended_noise, fed_noise;
};

namespace on_gpu {

/// Whether our kernels for GPUs can do what the functions below do; see gpu_layers.h.
bool can_run(const CausalBlockParams& params, const at::Tensor& x_BLD, const CausalBlockOptions& options);
at::Tensor causal_block(const CausalBlockParams& params, const at::Tensor& x_BLD,
                        const CausalBlockOptions& options);

bool can_embed(const at::Tensor& words_VD, const at::Tensor& positions_PD, const at::Tensor& ids_BL,
               const Noise& noise);
at::Tensor embed(const at::Tensor& words_VD, const at::Tensor& positions_PD, const at::Tensor& ids_BL,
                 const Noise& noise);

bool can_norm(const NormParams& params, const at::Tensor& x_BLD);
at::Tensor norm(const NormParams& params, const at::Tensor& x_BLD, double eps);

/// The sum of cross_entropy(hidden · table^T, labels) as in head_loss.h, from the table's copy in half
/// precision; no logits are ever made in fp32.
bool can_make_logits(const at::Tensor& table_VD, const at::Tensor& hidden_ND);
at::Tensor head_loss(const at::Tensor& hidden_ND, const at::Tensor& table_VD, const at::Tensor& labels_N);

}  // namespace on_gpu
}  // namespace syncopate::nn
