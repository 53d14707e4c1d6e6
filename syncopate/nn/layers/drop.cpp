#include "syncopate/nn/layers/drop.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "syncopate/nn/layers/fast/support.h"

namespace syncopate::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// `residual` may be undefined.
at::Tensor run(const at::Tensor& x, const at::Tensor& residual, const Noise& noise) {
  const at::Tensor out = at::empty_like(x);
  kernels::DropJob job;
  job.width = x.size(-1);
  job.noise = fast::noise_job(noise);
  job.in = x.data_ptr<float>();
  job.residual = residual.defined() ? residual.data_ptr<float>() : nullptr;
  job.out = out.data_ptr<float>();
  fast::for_rows(x.numel() / job.width, job.width,
                 [&](int64_t first, int64_t last) { kernels::kernels().drop(job, first, last); });
  return out;
}

struct Drop : torch::autograd::Function<Drop> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const Noise& noise) {
    ctx->saved_data["noise"] = fast::hold(noise);
    return run(x, {}, noise);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {run(grads[0].contiguous(), {}, fast::held<Noise>(ctx->saved_data["noise"])), at::Tensor()};
  }
};

struct AddDropped : torch::autograd::Function<AddDropped> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& residual, const at::Tensor& x,
                            const Noise& noise) {
    ctx->saved_data["noise"] = fast::hold(noise);
    return run(x, residual, noise);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {grads[0], run(grads[0].contiguous(), {}, fast::held<Noise>(ctx->saved_data["noise"])),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor drop(const at::Tensor& x, const Noise& noise) {
  if (!noise.active()) return x;
  return fast::can_run({x}) ? Drop::apply(x, noise) : apply_noise(x, noise);
}

at::Tensor add_dropped(const at::Tensor& residual, const at::Tensor& x, const Noise& noise) {
  if (!noise.active()) return residual + x;
  return fast::can_run({residual, x}) ? AddDropped::apply(residual, x, noise)
                                      : residual + apply_noise(x, noise);
}

}  // namespace syncopate::nn
