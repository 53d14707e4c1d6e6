#include "syncopate/nn/layers/batch_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <vector>

#include "syncopate/nn/layers/fast/support.h"
#include "syncopate/nn/layers/gpu/images.h"

namespace syncopate::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Mean and variance of each channel over all ranks, and how many values they are of.
struct Statistics {
  at::Tensor mean_C, var_C;  ///< fp32
  double count = 0;
};

/// Ranks exchange counts, sums and sums of squares. Those are made from each rank's own mean and variance and
/// added in double, so that a mean far from zero does not swallow the variance.
Statistics joint_statistics(const at::Tensor& x_BCHW, const SumOverRanks& sum) {
  const int64_t C = x_BCHW.size(1);
  at::Tensor packed = at::zeros({2 * C + 1}, x_BCHW.options().dtype(at::kDouble));
  if (x_BCHW.numel() > 0) {
    const double count = static_cast<double>(x_BCHW.numel() / C);
    const auto [var_C, mean_C] = at::var_mean(x_BCHW.to(at::kFloat), at::IntArrayRef({0, 2, 3}), false);
    const at::Tensor mean = mean_C.to(at::kDouble);
    packed.narrow(0, 0, C).copy_(mean * count);
    packed.narrow(0, C, C).copy_((var_C.to(at::kDouble) + mean * mean) * count);
    packed.narrow(0, 2 * C, 1).fill_(count);
  }
  sum(packed);
  Statistics made;
  made.count = packed[2 * C].item<double>();
  const double divisor = std::max(made.count, 1.0);
  const at::Tensor mean = packed.narrow(0, 0, C) / divisor;
  made.mean_C = mean.to(at::kFloat);
  made.var_C = (packed.narrow(0, C, C) / divisor - mean * mean).clamp_min(0).to(at::kFloat);
  return made;
}

struct JointBatchNorm : torch::autograd::Function<JointBatchNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_BCHW, const at::Tensor& weight_C,
                            const at::Tensor& bias_C, const Statistics& statistics, double eps,
                            const SumOverRanks& sum) {
    ctx->save_for_backward({x_BCHW, weight_C, statistics.mean_C, statistics.var_C});
    ctx->saved_data["count"] = statistics.count;
    ctx->saved_data["eps"] = eps;
    ctx->saved_data["sum"] = fast::hold(sum);
    if (x_BCHW.numel() == 0) return at::empty_like(x_BCHW);
    return std::get<0>(
        at::native_batch_norm(x_BCHW, weight_C, bias_C, statistics.mean_C, statistics.var_C, false, 0, eps));
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x_BCHW = saved[0], &weight_C = saved[1], &mean_C = saved[2], &var_C = saved[3];
    const double count = ctx->saved_data["count"].toDouble(), eps = ctx->saved_data["eps"].toDouble();
    const int64_t C = x_BCHW.size(1);
    at::Tensor x_grad = at::empty_like(x_BCHW);
    at::Tensor weight_grad = at::zeros_like(weight_C), bias_grad = at::zeros_like(weight_C);
    const bool some = x_BCHW.numel() > 0;
    if (some) {
      // Statistics of the batch are not asked for, but CUDA's kernels want to see that there are none.
      const at::Tensor none = at::empty({0}, mean_C.options());
      // With mean and variance held fixed: what they add through the batch follows below.
      std::tie(x_grad, weight_grad, bias_grad) =
          at::native_batch_norm_backward(grads[0], x_BCHW, weight_C, mean_C, var_C, none, none, false, eps,
                                         std::array<bool, 3>{true, true, true});
    }
    at::Tensor packed = at::cat({bias_grad, weight_grad}).to(at::kDouble);
    fast::held<SumOverRanks>(ctx->saved_data["sum"])(packed);
    if (some) {
      // grad = weight / deviation * (g - mean(g) - unit * mean(g unit)), unit = (x - mean) / deviation.
      const at::Tensor inverse_C = (var_C + eps).rsqrt();
      const at::Tensor factor_C = weight_C.to(at::kFloat) * inverse_C / count;
      const at::Tensor slope_C = -factor_C * inverse_C * packed.narrow(0, C, C).to(at::kFloat);
      const at::Tensor level_C = -factor_C * packed.narrow(0, 0, C).to(at::kFloat) - slope_C * mean_C;
      const auto over_channels = [&](const at::Tensor& y_C) {
        return y_C.to(x_BCHW.scalar_type()).view({1, C, 1, 1});
      };
      x_grad.addcmul_(x_BCHW, over_channels(slope_C)).add_(over_channels(level_C));
    }
    return {x_grad, weight_grad, bias_grad, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor batch_norm(const at::Tensor& x_BCHW, const BatchNormParams& params,
                      const BatchNormOptions& options) {
  if (on_gpu::can_norm(x_BCHW, params, options))
    return on_gpu::batch_norm(x_BCHW, params, options, {}, false).one;
  if (options.training && !options.sum && x_BCHW.numel() == x_BCHW.size(1)) {
    // One value a channel has no variance to learn from; the library would divide by none.
    if (!options.again) {
      params.running_mean.mul_(1 - options.momentum)
          .add_(x_BCHW.detach().flatten().to(at::kFloat), options.momentum);
    }
    return at::batch_norm(x_BCHW, params.weight, params.bias, {}, {}, true, options.momentum, options.eps,
                          true);
  }
  if (!options.training || !options.sum) {
    const bool needed = !options.training || !options.again;  // to read or to update
    return at::batch_norm(x_BCHW, params.weight, params.bias, needed ? params.running_mean : at::Tensor(),
                          needed ? params.running_var : at::Tensor(), options.training, options.momentum,
                          options.eps, true);
  }
  Statistics statistics;
  {
    const at::NoGradGuard no_grad;
    statistics = joint_statistics(x_BCHW.detach(), options.sum);
    if (statistics.count > 0 && !options.again) {
      // The running variance is that of what the batch was drawn from.
      const double unbiased = statistics.count / std::max(statistics.count - 1, 1.0);
      const double keep = 1 - options.momentum;
      params.running_mean.mul_(keep).add_(statistics.mean_C, options.momentum);
      params.running_var.mul_(keep).add_(statistics.var_C, options.momentum * unbiased);
    }
  }
  return JointBatchNorm::apply(x_BCHW, params.weight, params.bias, statistics, options.eps, options.sum);
}

at::Tensor batch_norm_relu(const at::Tensor& x_BCHW, const BatchNormParams& params,
                           const BatchNormOptions& options, const at::Tensor& added_BCHW) {
  if (on_gpu::can_norm(x_BCHW, params, options))
    return on_gpu::batch_norm(x_BCHW, params, options, added_BCHW, true).one;
  // A norm's output is not needed for its gradient, so that what follows may happen in place.
  at::Tensor y_BCHW = batch_norm(x_BCHW, params, options);
  if (added_BCHW.defined()) y_BCHW.add_(added_BCHW);
  return y_BCHW.relu_();
}

Twice batch_norm_relu_twice(const at::Tensor& x_BCHW, const BatchNormParams& params,
                            const BatchNormOptions& options, const at::Tensor& added_BCHW) {
  if (on_gpu::can_norm(x_BCHW, params, options))
    return on_gpu::batch_norm(x_BCHW, params, options, added_BCHW, true);
  const at::Tensor y_BCHW = batch_norm_relu(x_BCHW, params, options, added_BCHW);
  return {y_BCHW, y_BCHW};
}

bool reads_any_layout(const at::Tensor& x_BCHW, const at::Tensor& weight_OIKK) {
  return on_gpu::reads_any_layout(x_BCHW, weight_OIKK);
}

at::Tensor convolve(const at::Tensor& x_BCHW, const at::Tensor& weight_OIKK, int64_t stride,
                    int64_t padding) {
  if (on_gpu::can_convolve(x_BCHW, weight_OIKK))
    return on_gpu::convolve(x_BCHW, weight_OIKK, stride, padding);
  const std::vector<int64_t> strides(2, stride), paddings(2, padding);
  return at::conv2d(x_BCHW, weight_OIKK, {}, at::IntArrayRef(strides), at::IntArrayRef(paddings));
}

}  // namespace syncopate::nn
