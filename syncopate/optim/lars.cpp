#include "syncopate/optim/lars.h"

#include <ATen/ATen.h>

#include <cmath>

#include "syncopate/optim/flat_views.h"
#include "syncopate/optim/kernels.h"

namespace syncopate::optim {

Lars::Lars(const OptimizerOptions& options, const tensor::FlatParams& params)
    : StatefulOptimizer(options),
      blocks_(blocks_of(params)),
      adapted_(decay_flags(params)),
      momentum_(keep("momentum", params)) {}

void Lars::step(tensor::FlatParams& params, double lr, double grad_scale) {
  ++steps_;
  if (!use_kernels(options_, params)) return step_plainly(params, lr, grad_scale);
  float* const values = params.values.data_ptr<float>();
  const float* const grads = params.grads.data_ptr<float>();
  float* const momentum = momentum_.data_ptr<float>();
  const auto& entries = params.entries();
  std::vector<double> value_squares(blocks_.size()), grad_squares(blocks_.size());
  for_each_block(blocks_, [&](size_t number, const Block& block) {
    value_squares[number] = sum_of_squares(values + block.begin, block.end - block.begin);
    grad_squares[number] = sum_of_squares(grads + block.begin, block.end - block.begin);
  });
  const std::vector<double> value_sums = sums_by_entry(blocks_, value_squares, entries.size());
  const std::vector<double> grad_sums = sums_by_entry(blocks_, grad_squares, entries.size());
  for_each_block(blocks_, [&](size_t, const Block& block) {
    const bool decay = entries[block.entry].decay;
    const double value = std::sqrt(value_sums[block.entry]);
    const double grad = std::sqrt(grad_sums[block.entry]) * std::abs(grad_scale);
    const double ratio = decay && value > 0 && grad > 0
                             ? options_.trust * value / (grad + options_.weight_decay * value + options_.eps)
                             : 1.0;
    const LarsPass pass{.keep = static_cast<float>(options_.momentum),
                        .rate = static_cast<float>(lr * ratio),
                        .pull = static_cast<float>(decay ? options_.weight_decay : 0.0),
                        .grad_scale = static_cast<float>(grad_scale)};
    const int64_t from = block.begin;
    lars_pass(pass, values + from, grads + from, momentum + from, block.end - block.begin);
  });
}

void Lars::step_plainly(tensor::FlatParams& params, double lr, double grad_scale) {
  const at::NoGradGuard no_grad;
  const at::Tensor update = params.grads.to(momentum_.scalar_type()).mul(grad_scale);
  const auto by_entry = entry_views(params, update);
  const at::Tensor value_norms = norms_of(entry_views(params, params.values)).to(update.scalar_type());
  const at::Tensor grad_norms = norms_of(by_entry);
  add_decay(params, options_.weight_decay, update);
  const at::Tensor adapt = adapted_.logical_and(value_norms.gt(0)).logical_and(grad_norms.gt(0));
  const at::Tensor ratios = at::where(
      adapt, value_norms * options_.trust / (grad_norms + value_norms * options_.weight_decay + options_.eps),
      at::ones_like(value_norms));
  at::_foreach_mul_(by_entry, ratios.unbind());
  momentum_.mul_(options_.momentum).add_(update, lr);
  params.values.sub_(momentum_);
}

}  // namespace syncopate::optim
