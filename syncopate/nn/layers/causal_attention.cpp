#include "syncopate/nn/layers/causal_attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/version.h>

#include <cmath>
#include <limits>

#include "syncopate/nn/layers/fast/support.h"

namespace syncopate::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernels::AttentionJob attention_job(const at::Tensor& qkv_BLE, const CausalOptions& options,
                                    tensor::Precision precision) {
  const int64_t L = qkv_BLE.size(1), D = qkv_BLE.size(2) / 3;
  kernels::AttentionJob job = fast::attention_shape(options.heads, D, L, L, options.noise, precision);
  job.causal = options.causal;
  job.q = qkv_BLE.data_ptr<float>();
  job.k = job.q + D;
  job.v = job.k + D;
  job.q_stride = job.kv_stride = 3 * D;
  return job;
}

struct CausalAttention : torch::autograd::Function<CausalAttention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& qkv_BLE, const float* mask_BL,
                            const CausalOptions& options, bool keep) {
    const int64_t B = qkv_BLE.size(0), L = qkv_BLE.size(1), D = qkv_BLE.size(2) / 3;
    const tensor::Precision precision = tensor::cpu_precision();
    kernels::AttentionJob job = attention_job(qkv_BLE, options, precision);
    const at::Tensor context_BLD = at::empty({B, L, D}, qkv_BLE.options());
    const at::Tensor probs = keep ? at::empty({B * options.heads * L, L}, qkv_BLE.options()) : at::Tensor();
    job.mask = mask_BL;
    job.probs = keep ? probs.data_ptr<float>() : nullptr;
    job.context = context_BLD.data_ptr<float>();
    fast::for_heads(B, job, kernels::kernels().attention);
    ctx->save_for_backward({qkv_BLE, probs});
    ctx->saved_data["options"] = fast::hold(options);
    ctx->saved_data["precision"] = fast::hold(precision);
    return context_BLD;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto& options = fast::held<CausalOptions>(ctx->saved_data["options"]);
    const auto precision = fast::held<tensor::Precision>(ctx->saved_data["precision"]);
    const at::Tensor& qkv_BLE = saved[0];
    const int64_t D = qkv_BLE.size(2) / 3;
    const at::Tensor context_grad = grads[0].contiguous(), qkv_grad = at::empty_like(qkv_BLE);
    kernels::AttentionJob job = attention_job(qkv_BLE, options, precision);
    job.probs = saved[1].data_ptr<float>();
    job.grad_context = context_grad.data_ptr<float>();
    job.grad_q = qkv_grad.data_ptr<float>();
    job.grad_k = job.grad_q + D;
    job.grad_v = job.grad_k + D;
    fast::for_heads(qkv_BLE.size(0), job, kernels::kernels().attention_grad);
    return {qkv_grad, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

at::Tensor plain_attention(const at::Tensor& qkv_BLE, const at::Tensor& mask_BL,
                           const CausalOptions& options) {
  const int64_t B = qkv_BLE.size(0), L = qkv_BLE.size(1), D = qkv_BLE.size(2) / 3, H = options.heads;
  const auto split = qkv_BLE.view({B, L, 3, H, D / H}).permute({2, 0, 3, 1, 4}).unbind(0);
  const at::Tensor &q_BHLd = split[0], &k_BHLd = split[1], &v_BHLd = split[2];
#if TORCH_VERSION_MAJOR >= 2
  if (qkv_BLE.is_cuda() && options.causal && !mask_BL.defined()) {
    return at::scaled_dot_product_attention(q_BHLd, k_BHLd, v_BHLd, {}, options.noise.drop_below * 0x1p-32,
                                            true)
        .transpose(1, 2)
        .reshape({B, L, D});
  }
#endif
  at::Tensor scores_BHLL = at::matmul(q_BHLd, k_BHLd.transpose(2, 3)) / std::sqrt(static_cast<double>(D / H));
  if (options.causal) {
    const at::Tensor later_LL =
        at::ones({L, L}, qkv_BLE.options().dtype(at::kBool).requires_grad(false)).triu(1);
    scores_BHLL = scores_BHLL.masked_fill(later_LL, -std::numeric_limits<double>::infinity());
  }
  if (mask_BL.defined()) scores_BHLL = scores_BHLL + mask_BL.view({B, 1, 1, L});
  const at::Tensor probs_BHLL = apply_noise_by_head(at::softmax(scores_BHLL, -1), options.noise);
  return at::matmul(probs_BHLL, v_BHLd).transpose(1, 2).reshape({B, L, D});
}

}  // namespace

at::Tensor causal_attention(const at::Tensor& qkv_BLE, const at::Tensor& mask_BL,
                            const CausalOptions& options) {
  if (options.plain || !fast::can_run({qkv_BLE})) return plain_attention(qkv_BLE, mask_BL, options);
  const float* mask = mask_BL.defined() ? mask_BL.data_ptr<float>() : nullptr;
  return CausalAttention::apply(qkv_BLE, mask, options, at::GradMode::is_enabled());
}

}  // namespace syncopate::nn
