#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

// Attention over heads by one of libtorch's fused kernels: flash attention, or the one that takes a mask.
namespace syncopate::nn::on_gpu {

struct HeadOptions {
  double dropout = 0;
  bool causal = false;
};
struct Attended {
  at::Tensor out_BQHd;
  std::vector<at::Tensor> kept;  ///< for the gradients
};
/// `mask_BL` is added to the scores of each position attended to; it may be undefined.
Attended attention(const at::Tensor& q_BQHd, const at::Tensor& k_BLHd, const at::Tensor& v_BLHd,
                   const at::Tensor& mask_BL, const HeadOptions& options);
/// Gradients of query, key and value, each [rows, D].
std::array<at::Tensor, 3> attention_grads(const at::Tensor& grad_BQHd, const at::Tensor& q_BQHd,
                                          const at::Tensor& k_BLHd, const at::Tensor& v_BLHd,
                                          const Attended& made, const HeadOptions& options);

/// Part `which` of a joined projection [B, L, parts, H, d].
at::Tensor part(const at::Tensor& joined_NE, int64_t examples, int64_t heads, int64_t parts, int64_t which);
/// Whether the fused kernels take heads of this width.
bool takes_heads(int64_t width, int64_t heads);

}  // namespace syncopate::nn::on_gpu
