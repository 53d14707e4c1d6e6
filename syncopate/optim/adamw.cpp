#include "syncopate/optim/adamw.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "syncopate/optim/adam_step.h"
#include "syncopate/optim/kernels.h"
#include "syncopate/optim/pass.h"

namespace syncopate::optim {

AdamW::AdamW(const OptimizerOptions& options, const tensor::FlatParams& params)
    : StatefulOptimizer(options), first_(keep("exp_avg", params)), second_(keep("exp_avg_sq", params)) {}

void AdamW::step(tensor::FlatParams& params, double lr, double grad_scale) {
  step_part(params, lr, grad_scale, 0, params.size());
}

bool AdamW::updates_parts(const tensor::FlatParams& params) const { return use_kernels(options_, params); }

void AdamW::step_part(tensor::FlatParams& params, double lr, double grad_scale, int64_t begin, int64_t end) {
  ++steps_;
  update(params, lr, grad_scale, begin, end);
}

std::optional<double> AdamW::step_clipped(tensor::FlatParams& params, double lr, double grad_scale,
                                          double limit) {
  if (options_.plain || !params.values.is_cuda() || params.values.scalar_type() != at::kFloat ||
      !gpu::built())
    return std::nullopt;
  if (!clip_) clip_ = std::make_unique<gpu::Clip>(params.values.device());
  ++steps_;
  if (limit > 0) {
    clip_->measure(params.grads, grad_scale, limit);
  } else {
    clip_->set_factor(grad_scale);
  }
  const BiasCorrections corrections(options_, steps_);
  gpu::adamw(params, first_, second_, clip_->factor(),
             {.beta1 = options_.beta1,
              .beta2 = options_.beta2,
              .eps = options_.eps,
              .step_size = lr / corrections.first,
              .root_correction = 1 / std::sqrt(corrections.second),
              .shrink = 1 - lr * options_.weight_decay});
  params.half_fresh = params.half.defined();
  return limit > 0 ? clip_->norm() : 0;
}

void AdamW::update(tensor::FlatParams& params, double lr, double grad_scale, int64_t begin,
                   int64_t end) const {
  if (!use_kernels(options_, params)) return update_plainly(params, lr, grad_scale, begin, end);
  const AdamWPass pass = adam_pass(options_, steps_, lr, grad_scale);
  float* const values = params.values.data_ptr<float>();
  const float* const grads = params.summed().data_ptr<float>();
  float* const first = first_.data_ptr<float>();
  float* const second = second_.data_ptr<float>();
  for_each_run(params, begin, end, [&](int64_t from, int64_t to, bool decay) {
    const auto shrink = static_cast<float>(decay ? 1 - lr * options_.weight_decay : 1.0);
    adamw_pass(pass, shrink, values + from, grads + from, first + from, second + from, to - from);
  });
}

void AdamW::update_plainly(tensor::FlatParams& params, double lr, double grad_scale, int64_t from,
                           int64_t to) const {
  const at::NoGradGuard no_grad;
  const BiasCorrections corrections(options_, steps_);
  std::vector<at::Tensor> decaying;
  for_each_span(params, from, to, [&](int64_t begin, int64_t end, bool decay) {
    if (decay) decaying.push_back(params.values.narrow(0, begin, end - begin));
  });
  if (options_.weight_decay > 0 && !decaying.empty()) {
    at::_foreach_mul_(decaying, 1 - lr * options_.weight_decay);
  }
  constexpr int64_t kChunk = int64_t{1} << 26;  // bounds what the temporaries take
  for (int64_t begin = from; begin < to; begin += kChunk) {
    const auto part = [&](const at::Tensor& flat) {
      return flat.narrow(0, begin, std::min(kChunk, to - begin));
    };
    const at::Tensor m = part(first_), v = part(second_);
    const at::Tensor grad = part(params.grads).to(m.scalar_type()).mul(grad_scale);
    m.mul_(options_.beta1).add_(grad, 1 - options_.beta1);
    v.mul_(options_.beta2).addcmul_(grad, grad, 1 - options_.beta2);
    const at::Tensor divisor = v.sqrt().mul_(1 / std::sqrt(corrections.second)).add_(options_.eps);
    part(params.values).add_(at::div(m, divisor), -lr / corrections.first);
  }
}

}  // namespace syncopate::optim
