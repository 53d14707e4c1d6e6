#include "syncopate/nn/layers/head_loss.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/gpu/graph.h"
#include "syncopate/nn/layers/causal_block.h"
#include "syncopate/nn/layers/cross_entropy.h"
#include "syncopate/nn/layers/product.h"

namespace syncopate::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows whose logits are held at once.
int64_t rows_at_once(int64_t classes, bool cpu) {
  const int64_t elements = cpu ? int64_t{1} << 24 : int64_t{1} << 28;
  return std::max<int64_t>(64, elements / classes);
}

struct HeadLoss : torch::autograd::Function<HeadLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& hidden_ND, const at::Tensor& table_VD,
                            const at::Tensor& labels_N, bool keep) {
    // A table of more bits than the hidden state (under autocast) is rounded for the products alone.
    const tensor::Precision precision = tensor::cpu_precision();
    const at::Tensor rounded_VD = table_VD.to(hidden_ND.scalar_type());
    const int64_t N = hidden_ND.size(0), step = rows_at_once(table_VD.size(0), hidden_ND.is_cpu());
    at::Tensor sum = at::zeros({}, hidden_ND.options().dtype(at::kFloat));
    const at::Tensor hidden_grad = keep ? at::empty_like(hidden_ND) : at::Tensor();
    const at::Tensor table_grad = keep ? at::zeros_like(rounded_VD) : at::Tensor();
    for (int64_t begin = 0; begin < N; begin += step) {
      const int64_t rows = std::min(step, N - begin);
      const at::Tensor part_RD = hidden_ND.narrow(0, begin, rows);
      const at::Tensor asked_R = labels_N.narrow(0, begin, rows).ne(kNoLabel);
      const at::Tensor labels_R1 =
          labels_N.narrow(0, begin, rows).masked_fill(asked_R.logical_not(), 0).unsqueeze(1);
      at::Tensor logits_RV = product(part_RD, rounded_VD.t(), precision).to(at::kFloat);
      const at::Tensor own_R = logits_RV.gather(1, labels_R1).squeeze(1);
      at::Tensor probs_RV = at::softmax(logits_RV, 1);
      // The log of the sum of exponents, from one element of the softmax that is not lost to rounding: the
      // largest.
      const at::Tensor log_sum_R = logits_RV.amax(1) - probs_RV.amax(1).log();
      sum += (log_sum_R - own_R).masked_fill(asked_R.logical_not(), 0).sum();
      if (!keep) continue;
      logits_RV.reset();
      probs_RV.scatter_add_(1, labels_R1, at::full_like(labels_R1, -1, probs_RV.options()));
      probs_RV.mul_(asked_R.to(at::kFloat).unsqueeze(1));
      const at::Tensor grad_RV = probs_RV.to(hidden_ND.scalar_type());
      product_into(hidden_grad.narrow(0, begin, rows), grad_RV, rounded_VD, precision);
      add_product(table_grad, grad_RV.t(), part_RD, precision);
    }
    ctx->save_for_backward({hidden_grad, keep ? table_grad.to(table_VD.scalar_type()) : table_grad});
    return sum;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    // A loss that is back-propagated as it stands needs no pass over the table.
    const bool as_it_stands = grads[0].is_cpu() && grads[0].item<float>() == 1;
    const auto scaled = [&](const at::Tensor& made) {
      return as_it_stands ? made : made * grads[0].to(made.scalar_type());
    };
    return {scaled(saved[0]), scaled(saved[1]), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

tensor::Loss head_loss(const at::Tensor& hidden_ND, const at::Tensor& table_VD, const at::Tensor& labels_N) {
  const int64_t classes = table_VD.size(0);
  const at::Tensor asked_N = labels_N.ne(kNoLabel);
  const int64_t count =
      gpu::capturing(labels_N.device()) ? 0 : asked_N.sum().item<int64_t>();  // as in cross_entropy
  at::Tensor rows_ND = hidden_ND, rows_labels_N = labels_N;
  if (labels_N.is_cpu() && labels_N.numel() > 0) {
    if (asked_N.logical_and(labels_N.lt(0).logical_or(labels_N.ge(classes))).any().item<bool>()) {
      throw DataError("a batch has a label outside 0..{}; give the model as many classes as the data has",
                      classes - 1);
    }
    if (count < labels_N.numel()) {
      const at::Tensor chosen = asked_N.nonzero().squeeze(1);
      rows_ND = hidden_ND.index_select(0, chosen);
      rows_labels_N = labels_N.index_select(0, chosen);
    }
  }
  if (on_gpu::can_make_logits(table_VD, rows_ND))
    return {on_gpu::head_loss(rows_ND, table_VD, rows_labels_N), count};
  return {HeadLoss::apply(rows_ND, table_VD, rows_labels_N, at::GradMode::is_enabled()), count};
}

}  // namespace syncopate::nn
