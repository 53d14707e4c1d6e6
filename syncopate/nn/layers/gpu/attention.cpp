#include "syncopate/nn/layers/gpu/attention.h"

#include <ATen/ATen.h>
#include <torch/version.h>

#include <tuple>

#include "syncopate/base/error.h"

namespace syncopate::nn::on_gpu {

#if TORCH_VERSION_MAJOR >= 2
Attended attention(const at::Tensor& q_BQHd, const at::Tensor& k_BLHd, const at::Tensor& v_BLHd,
                   const at::Tensor& mask_BL, const HeadOptions& options) {
  const int64_t B = q_BQHd.size(0), Q = q_BQHd.size(1), H = q_BQHd.size(2), L = k_BLHd.size(1);
  if (!mask_BL.defined()) {
    const auto [out, sums, state, unused, debug] = at::_flash_attention_forward(
        q_BQHd, k_BLHd, v_BLHd, {}, {}, Q, L, options.dropout, options.causal, false);
    return {out, {sums, state, unused}};
  }
  // The kernel loads eight at a time: every row begins at a multiple of that, whatever the length.
  const at::Tensor rows = at::empty({B, (L + 7) / 8 * 8}, q_BQHd.options()).narrow(1, 0, L);
  rows.copy_(mask_BL);
  const at::Tensor bias = rows.unsqueeze(1).unsqueeze(1).expand({B, H, Q, L});
  const auto [out, sums, seed, offset] = at::_scaled_dot_product_efficient_attention(
      q_BQHd.transpose(1, 2), k_BLHd.transpose(1, 2), v_BLHd.transpose(1, 2), bias, true, options.dropout,
      options.causal);
  return {out.transpose(1, 2), {sums, seed, offset, bias}};
}

std::array<at::Tensor, 3> attention_grads(const at::Tensor& grad_BQHd, const at::Tensor& q_BQHd,
                                          const at::Tensor& k_BLHd, const at::Tensor& v_BLHd,
                                          const Attended& made, const HeadOptions& options) {
  const int64_t Q = q_BQHd.size(1), L = k_BLHd.size(1), D = q_BQHd.size(2) * q_BQHd.size(3);
  at::Tensor q, k, v;
  if (made.kept.size() == 3) {
    std::tie(q, k, v) =
        at::_flash_attention_backward(grad_BQHd, q_BQHd, k_BLHd, v_BLHd, made.out_BQHd, made.kept[0], {}, {},
                                      Q, L, options.dropout, options.causal, made.kept[1], made.kept[2]);
  } else {
    at::Tensor none;
    std::tie(q, k, v, none) = at::_scaled_dot_product_efficient_attention_backward(
        grad_BQHd.transpose(1, 2), q_BQHd.transpose(1, 2), k_BLHd.transpose(1, 2), v_BLHd.transpose(1, 2),
        made.kept[3], made.out_BQHd.transpose(1, 2), made.kept[0], made.kept[1], made.kept[2],
        options.dropout, {true, true, true, false}, options.causal);
    q = q.transpose(1, 2);
    k = k.transpose(1, 2);
    v = v.transpose(1, 2);
  }
  return {q.reshape({-1, D}), k.reshape({-1, D}), v.reshape({-1, D})};
}

bool takes_heads(int64_t width, int64_t heads) {
  return heads > 0 && width % (8 * heads) == 0 && width / heads <= 256;
}
#else
Attended attention(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                   const HeadOptions&) {
  throw InternalError("fused attention came with libtorch 2");
}
std::array<at::Tensor, 3> attention_grads(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                          const at::Tensor&, const Attended&, const HeadOptions&) {
  throw InternalError("fused attention came with libtorch 2");
}
bool takes_heads(int64_t, int64_t) { return false; }
#endif

at::Tensor part(const at::Tensor& joined_NE, int64_t examples, int64_t heads, int64_t parts, int64_t which) {
  const int64_t d = joined_NE.size(1) / parts / heads;
  return joined_NE.view({examples, -1, parts, heads, d}).select(2, which);
}

}  // namespace syncopate::nn::on_gpu
