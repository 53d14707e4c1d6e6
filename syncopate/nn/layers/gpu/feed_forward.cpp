#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "syncopate/nn/layers/fast/support.h"
#include "syncopate/nn/layers/gpu/layers.h"
#include "syncopate/nn/layers/gpu/support.h"

namespace syncopate::nn::on_gpu {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct FeedForwardWeights {
  explicit FeedForwardWeights(const FeedForwardParams& params)
      : up(params.up), down(params.down), norm(params.norm) {}
  Linear up, down;
  Norm norm;
};

/// Parameters are inputs so that autograd knows when their gradients are there.
struct FeedForward : torch::autograd::Function<FeedForward> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_BLD, const FeedForwardWeights& weights,
                            const FeedForwardOptions& options, const at::Tensor&, const at::Tensor&,
                            const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&) {
    const bool tanh = options.activation == Activation::kGeluTanh;
    const at::Tensor x_ND = x_BLD.view({-1, x_BLD.size(2)});
    const at::Tensor up_NF = product(weights.up, x_ND);
    const at::Tensor active_NF = gpu::gelu(up_NF, tanh, drop_of(options.inner_noise));
    const at::Tensor dense_ND = at::mm(active_NF, weights.down.weight.half.t());
    const gpu::Normed normed =
        gpu::norm_of_sum(dense_ND, weights.down.bias.value, x_ND, weights.norm.weight.value,
                         weights.norm.shift.value, options.eps, drop_of(options.output_noise));
    ctx->save_for_backward({x_ND, up_NF, active_NF, normed.sum_ND, normed.stats_N2});
    ctx->saved_data["weights"] = fast::hold(weights);
    ctx->saved_data["options"] = fast::hold(options);
    return normed.out_ND.view(x_BLD.sizes());
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto& weights = fast::held<FeedForwardWeights>(ctx->saved_data["weights"]);
    const auto& options = fast::held<FeedForwardOptions>(ctx->saved_data["options"]);
    const at::Tensor &x_ND = saved[0], &up_NF = saved[1], &active_NF = saved[2];
    const bool tanh = options.activation == Activation::kGeluTanh;
    const at::Tensor grad_ND = grads[0].contiguous().view(x_ND.sizes());
    const gpu::NormGrads norm = gpu::norm_of_sum_grads(
        grad_ND, {{}, saved[3], saved[4]}, weights.norm.weight.value, drop_of(options.output_noise),
        weights.norm.weight.grad, weights.norm.shift.grad, weights.down.bias.grad);
    const at::Tensor inner_NF = at::mm(norm.dense_ND, weights.down.weight.half);
    gpu::add_product(weights.down.weight.grad, norm.dense_ND, active_NF);
    gpu::gelu_grad(inner_NF, up_NF, tanh, drop_of(options.inner_noise), weights.up.bias.grad);
    gpu::add_product(weights.up.weight.grad, inner_NF, x_ND);
    at::Tensor x_grad_ND = norm.sum_ND;  // last: without noise dense_ND is the same tensor
    x_grad_ND.addmm_(inner_NF, weights.up.weight.half);
    variable_list made(9);
    made[0] = x_grad_ND.view(grads[0].sizes());
    return made;
  }
};

}  // namespace

bool can_run(const FeedForwardParams& params, const at::Tensor& x_BLD, const FeedForwardOptions& options) {
  return x_BLD.is_cuda() && x_BLD.scalar_type() == at::kBFloat16 && x_BLD.numel() > 0 &&
         has_copies({params.up, params.down}, params.norm) && gpu::takes(x_BLD.size(2)) &&
         params.up.weight.size(0) % 8 == 0 && can_draw(options.inner_noise) && can_draw(options.output_noise);
}

at::Tensor feed_forward(const FeedForwardParams& params, const at::Tensor& x_BLD,
                        const FeedForwardOptions& options) {
  return FeedForward::apply(x_BLD, FeedForwardWeights(params), options, params.up.weight, params.up.bias,
                            params.down.weight, params.down.bias, params.norm.weight, params.norm.bias);
}

}  // namespace syncopate::nn::on_gpu
