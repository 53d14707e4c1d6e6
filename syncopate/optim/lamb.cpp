#include "syncopate/optim/lamb.h"

#include <ATen/ATen.h>

#include <cmath>

#include "syncopate/optim/adam_step.h"
#include "syncopate/optim/flat_views.h"
#include "syncopate/optim/kernels.h"

namespace syncopate::optim {

Lamb::Lamb(const OptimizerOptions& options, const tensor::FlatParams& params)
    : StatefulOptimizer(options),
      blocks_(blocks_of(params)),
      adapted_(decay_flags(params)),
      first_(keep("exp_avg", params)),
      second_(keep("exp_avg_sq", params)) {}

void Lamb::step(tensor::FlatParams& params, double lr, double grad_scale) {
  ++steps_;
  if (!use_kernels(options_, params)) return step_plainly(params, lr, grad_scale);
  const AdamWPass pass = adam_pass(options_, steps_, 1, grad_scale);
  float* const values = params.values.data_ptr<float>();
  const float* const grads = params.grads.data_ptr<float>();
  float* const first = first_.data_ptr<float>();
  float* const second = second_.data_ptr<float>();
  const auto& entries = params.entries();
  const auto pull_of = [&](size_t entry) {
    return static_cast<float>(entries[entry].decay ? options_.weight_decay : 0.0);
  };
  std::vector<double> value_squares(blocks_.size()), update_squares(blocks_.size());
  for_each_block(blocks_, [&](size_t number, const Block& block) {
    const int64_t from = block.begin, count = block.end - block.begin;
    value_squares[number] = sum_of_squares(values + from, count);
    update_squares[number] = lamb_moments(pass, pull_of(block.entry), values + from, grads + from,
                                          first + from, second + from, count);
  });
  const std::vector<double> value_sums = sums_by_entry(blocks_, value_squares, entries.size());
  const std::vector<double> update_sums = sums_by_entry(blocks_, update_squares, entries.size());
  for_each_block(blocks_, [&](size_t, const Block& block) {
    const double value = value_sums[block.entry], update = update_sums[block.entry];
    const bool adapt = entries[block.entry].decay && value > 0 && update > 0;
    const auto rate = static_cast<float>(lr * (adapt ? std::sqrt(value / update) : 1.0));
    const int64_t from = block.begin;
    lamb_take(pass, pull_of(block.entry), rate, values + from, first + from, second + from,
              block.end - block.begin);
  });
}

void Lamb::step_plainly(tensor::FlatParams& params, double lr, double grad_scale) {
  const at::NoGradGuard no_grad;
  const BiasCorrections corrections(options_, steps_);
  const at::Tensor grad = params.grads.to(first_.scalar_type()).mul(grad_scale);
  first_.mul_(options_.beta1).add_(grad, 1 - options_.beta1);
  second_.mul_(options_.beta2).addcmul_(grad, grad, 1 - options_.beta2);
  const at::Tensor update =
      second_.sqrt().mul_(1 / std::sqrt(corrections.second)).add_(options_.eps).reciprocal_();
  update.mul_(first_).mul_(1 / corrections.first);
  add_decay(params, options_.weight_decay, update);

  const auto by_entry = entry_views(params, update);
  const at::Tensor value_norms = norms_of(entry_views(params, params.values)).to(update.scalar_type());
  const at::Tensor update_norms = norms_of(by_entry);
  const at::Tensor adapt = adapted_.logical_and(value_norms.gt(0)).logical_and(update_norms.gt(0));
  const at::Tensor ratios = at::where(adapt, value_norms / update_norms, at::ones_like(value_norms));
  at::_foreach_mul_(by_entry, ratios.unbind());
  params.values.add_(update, -lr);
}

}  // namespace syncopate::optim
