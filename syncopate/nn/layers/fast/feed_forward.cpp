#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "syncopate/nn/layers/fast/layers.h"
#include "syncopate/nn/layers/fast/norm.h"
#include "syncopate/nn/layers/fast/support.h"
#include "syncopate/nn/layers/product.h"

namespace syncopate::nn::fast {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernels::GeluJob gelu_job(const at::Tensor& up_NF, const at::Tensor& bias_F,
                          const FeedForwardOptions& options) {
  kernels::GeluJob job;
  job.width = up_NF.size(1);
  job.tanh = options.activation == Activation::kGeluTanh;
  job.noise = noise_job(options.inner_noise);
  job.in = up_NF.data_ptr<float>();
  job.bias = bias_F.data_ptr<float>();
  return job;
}

/// The activated values are not kept: the backward pass needs the activation's slope anyway, and both come
/// from one evaluation.
struct FeedForward : torch::autograd::Function<FeedForward> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_BLD, const at::Tensor& up_FD,
                            const at::Tensor& up_bias_F, const at::Tensor& down_DF,
                            const at::Tensor& down_bias_D, const at::Tensor& weight_D,
                            const at::Tensor& shift_D, const FeedForwardOptions& options) {
    const int64_t D = x_BLD.size(2), F = up_FD.size(0);
    const at::Tensor x_ND = x_BLD.view({-1, D});
    const tensor::Precision precision = tensor::cpu_precision();
    const at::Tensor up_NF = product(x_ND, up_FD.t(), precision);
    const at::Tensor active_NF = at::empty_like(up_NF);
    kernels::GeluJob job = gelu_job(up_NF, up_bias_F, options);
    job.out = active_NF.data_ptr<float>();
    for_rows(up_NF.size(0), F,
             [&](int64_t first, int64_t last) { kernels::kernels().gelu(job, first, last); });
    const at::Tensor sum_ND = product(active_NF, down_DF.t(), precision);
    const Normed normed =
        norm_sum(sum_ND, down_bias_D, x_ND, D, weight_D, shift_D, options.eps, options.output_noise);
    ctx->save_for_backward({x_BLD, up_FD, up_bias_F, down_DF, weight_D, up_NF, sum_ND, normed.stats_N2});
    ctx->saved_data["options"] = hold(options);
    ctx->saved_data["precision"] = hold(precision);
    return normed.out_ND.view(x_BLD.sizes());
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x_BLD = saved[0], &up_FD = saved[1], &up_bias_F = saved[2], &down_DF = saved[3];
    const at::Tensor &weight_D = saved[4], &up_NF = saved[5], &sum_ND = saved[6], &stats_N2 = saved[7];
    const auto& options = held<FeedForwardOptions>(ctx->saved_data["options"]);
    const auto precision = held<tensor::Precision>(ctx->saved_data["precision"]);
    const int64_t N = up_NF.size(0), F = up_NF.size(1);
    const at::Tensor x_ND = x_BLD.view({N, -1});

    const NormSumGrads norm =
        norm_sum_grads(grads[0].contiguous(), sum_ND, stats_N2, weight_D, options.output_noise);
    const at::Tensor grad_NF =
        product(norm.dense_ND, down_DF, precision);  // of the activated, then of the product before it
    const at::Tensor active_NF = at::empty_like(up_NF);
    kernels::GeluJob job = gelu_job(up_NF, up_bias_F, options);
    job.out = active_NF.data_ptr<float>();
    job.grad = grad_NF.data_ptr<float>();
    const at::Tensor up_bias_grad = sum_over_rows(N, F, [&](int64_t first, int64_t last, float* sums) {
      kernels::kernels().gelu_grad(job, first, last, sums);
    });
    const at::Tensor down_grad = product(norm.dense_ND.t(), active_NF, precision);
    const at::Tensor up_grad = product(grad_NF.t(), x_ND, precision);
    // Without noise dense_ND and sum_ND are one tensor: it is added to last.
    at::Tensor x_grad_ND = norm.sum_ND;
    add_product(x_grad_ND, grad_NF, up_FD, precision);
    return {x_grad_ND.view(x_BLD.sizes()),
            up_grad,
            up_bias_grad,
            down_grad,
            norm.bias_D,
            norm.weight_D,
            norm.shift_D,
            at::Tensor()};
  }
};

}  // namespace

at::Tensor feed_forward(const FeedForwardParams& params, const at::Tensor& x_BLD,
                        const FeedForwardOptions& options) {
  return FeedForward::apply(x_BLD, params.up.weight, params.up.bias, params.down.weight, params.down.bias,
                            params.norm.weight, params.norm.bias, options);
}

}  // namespace syncopate::nn::fast
