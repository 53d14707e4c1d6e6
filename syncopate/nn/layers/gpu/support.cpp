#include "syncopate/nn/layers/gpu/support.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "syncopate/gpu/graph.h"
#include "syncopate/nn/layers/fast/support.h"
#include "syncopate/tensor/half_weights.h"

namespace syncopate::nn::on_gpu {
namespace {

struct DropRows : torch::autograd::Function<DropRows> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            const gpu::Drop& drop) {
    ctx->saved_data["drop"] = fast::hold(drop);
    return run(x, drop);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    return {run(grads[0], fast::held<gpu::Drop>(ctx->saved_data["drop"])), at::Tensor()};
  }
  static at::Tensor run(const at::Tensor& x, const gpu::Drop& drop) {
    return gpu::drop(x.contiguous().view({-1, x.size(-1)}), drop).view(x.sizes());
  }
};

}  // namespace

Weight::Weight(const at::Tensor& parameter)
    : value(parameter.detach()), half(tensor::half_of(parameter)), grad(parameter.grad()) {}

bool has_copy(const at::Tensor& parameter) {
  return parameter.is_cuda() && gpu::built() && at::GradMode::is_enabled() && parameter.grad().defined() &&
         tensor::half_of(parameter).defined();
}

bool has_copies(std::initializer_list<LinearParams> linears, const NormParams& norm) {
  for (const LinearParams& linear : linears) {
    if (!has_copy(linear.weight) || !has_copy(linear.bias)) return false;
  }
  return has_copy(norm.weight) && has_copy(norm.bias);
}

bool can_draw(const Noise& noise) { return !noise.active() || noise.device != nullptr; }

gpu::Drop drop_of(const Noise& noise) {
  if (!noise.active()) return {};
  return {.key = noise.device->key,
          .examples = noise.device->examples,
          .positions = noise.device->positions,
          .site = noise.site,
          .each = noise.device->each,
          .below = noise.drop_below,
          .scale = noise.scale};
}

bool can_drop(const at::Tensor& x, const Noise& noise) {
  return noise.active() && noise.device != nullptr && gpu::built() && x.is_cuda() &&
         x.scalar_type() == at::kBFloat16 && x.numel() > 0 && x.size(-1) % 8 == 0;
}

at::Tensor drop(const at::Tensor& x, const Noise& noise) { return DropRows::apply(x, drop_of(noise)); }

at::Tensor product(const Linear& linear, const at::Tensor& x_ND) {
  return at::addmm(linear.bias.half, x_ND, linear.weight.half.t());
}

}  // namespace syncopate::nn::on_gpu
