#include "syncopate/nn/layers/layers_plain.h"

#include <ATen/ATen.h>
#include <torch/version.h>

#include <cmath>

#include "syncopate/base/error.h"

namespace syncopate::nn::plain {
namespace {

at::Tensor norm(const at::Tensor& x, const NormParams& params, double eps) {
  return at::layer_norm(x, {x.size(-1)}, params.weight, params.bias, eps);
}

at::Tensor linear(const at::Tensor& x, const LinearParams& params) {
  return at::linear(x, params.weight, params.bias);
}

}  // namespace

at::Tensor embed(const EmbeddingParams& params, const at::Tensor& ids_BL, const at::Tensor& types_BL,
                 const EmbeddingOptions& options) {
  check(options.packed == nullptr, "only our kernels compute on packed rows");
  const bool sparse = params.word.grad().defined() && params.word.is_cpu();
  at::Tensor sum_BLD = at::embedding(params.word, ids_BL, options.pad_token, false, sparse) +
                       params.position.narrow(0, 0, ids_BL.size(1)) + at::embedding(params.type, types_BL);
  return apply_noise(norm(sum_BLD, params.norm, options.eps), options.noise);
}

at::Tensor attend(const AttentionParams& params, const at::Tensor& x_BLD, const at::Tensor& mask_BL,
                  const AttentionOptions& options) {
  check(options.packed == nullptr, "only our kernels compute on packed rows");
  const int64_t B = x_BLD.size(0), L = x_BLD.size(1), D = x_BLD.size(2), H = options.heads;
  const int64_t Q = options.first_only ? 1 : L;
  const at::Tensor asked_BQD = x_BLD.narrow(1, 0, Q);
  const auto heads = [&](const at::Tensor& y) { return y.view({B, y.size(1), H, D / H}).transpose(1, 2); };
  const at::Tensor q_BHQd = heads(linear(asked_BQD, params.query));
  const at::Tensor k_BHLd = heads(linear(x_BLD, params.key));
  const at::Tensor v_BHLd = heads(linear(x_BLD, params.value));
#if TORCH_VERSION_MAJOR >= 2
  if (x_BLD.is_cuda()) {  // one fused kernel; its mask says who may be seen
    const at::Tensor seen =
        mask_BL.defined() ? mask_BL.eq(0).view({B, 1, 1, L}).expand({B, 1, Q, L}) : at::Tensor();
    const at::Tensor fused_BHQd = at::scaled_dot_product_attention(
        q_BHQd, k_BHLd, v_BHLd, seen.defined() ? std::optional<at::Tensor>(seen) : std::nullopt,
        options.probs_noise.drop_below * 0x1p-32);
    const at::Tensor mixed_BQD = apply_noise(
        linear(fused_BHQd.transpose(1, 2).reshape({B, Q, D}), params.output), options.output_noise);
    return norm(asked_BQD + mixed_BQD, params.norm, options.eps);
  }
#endif
  at::Tensor scores_BHQL = at::matmul(q_BHQd, k_BHLd.transpose(2, 3)) / std::sqrt(static_cast<double>(D / H));
  if (mask_BL.defined()) scores_BHQL = scores_BHQL + mask_BL.view({B, 1, 1, L});
  const at::Tensor probs_BHQL = apply_noise_by_head(at::softmax(scores_BHQL, -1), options.probs_noise);
  const at::Tensor context_BQD = at::matmul(probs_BHQL, v_BHLd).transpose(1, 2).reshape({B, Q, D});
  const at::Tensor dense_BQD = apply_noise(linear(context_BQD, params.output), options.output_noise);
  return norm(asked_BQD + dense_BQD, params.norm, options.eps);
}

at::Tensor feed_forward(const FeedForwardParams& params, const at::Tensor& x_BLD,
                        const FeedForwardOptions& options) {
  const at::Tensor up_BLF = linear(x_BLD, params.up);
  const at::Tensor active_BLF = at::gelu(up_BLF, gelu_kind(options.activation));
  const at::Tensor down_BLD = linear(apply_noise(active_BLF, options.inner_noise), params.down);
  return norm(x_BLD + apply_noise(down_BLD, options.output_noise), params.norm, options.eps);
}

}  // namespace syncopate::nn::plain
