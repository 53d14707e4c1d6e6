#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "syncopate/nn/layers/fast/support.h"
#include "syncopate/nn/layers/gpu/attention.h"
#include "syncopate/nn/layers/gpu/layers.h"
#include "syncopate/nn/layers/gpu/support.h"

namespace syncopate::nn::on_gpu {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Value, key and query lie one behind the other in half precision, in the order of flat parameters: one
/// factor of 3 D rows.
struct AttentionWeights {
  explicit AttentionWeights(const AttentionParams& params)
      : value(params.value), key(params.key), query(params.query), output(params.output), norm(params.norm) {}

  at::Tensor joined(int64_t parts) const {  ///< of value, key and query the first ones
    const at::Tensor& first = value.weight.half;
    return first.as_strided({parts * first.size(0), first.size(1)}, {first.size(1), 1});
  }
  at::Tensor joined_bias(int64_t parts) const {
    return value.bias.half.as_strided({parts * value.bias.half.size(0)}, {1});
  }

  Linear value, key, query, output;
  Norm norm;
};

bool neighbours(const at::Tensor& first, const at::Tensor& second) {
  return static_cast<const char*>(first.data_ptr()) + first.numel() * first.element_size() ==
         static_cast<const char*>(second.data_ptr());
}

/// Apart, since autograd's inputs may not be undefined.
struct Mask {
  at::Tensor mask_BL;
};

struct Attend : torch::autograd::Function<Attend> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_BLD, const Mask& mask,
                            const AttentionWeights& weights, const AttentionOptions& options,
                            const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                            const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                            const at::Tensor&, const at::Tensor&) {
    const int64_t B = x_BLD.size(0), D = x_BLD.size(2), H = options.heads;
    const int64_t parts = options.first_only ? 2 : 3;  // then the query is asked for at one position alone
    const at::Tensor x_ND = x_BLD.view({-1, D});
    const at::Tensor asked_RD = options.first_only ? x_BLD.select(1, 0) : x_ND;
    const at::Tensor joined_NE = at::addmm(weights.joined_bias(parts), x_ND, weights.joined(parts).t());
    const at::Tensor query_RD = options.first_only ? product(weights.query, asked_RD) : at::Tensor();
    const at::Tensor v = part(joined_NE, B, H, parts, 0), k = part(joined_NE, B, H, parts, 1);
    const at::Tensor q = options.first_only ? part(query_RD, B, H, 1, 0) : part(joined_NE, B, H, parts, 2);
    const Attended made = attention(q, k, v, mask.mask_BL, {.dropout = dropout(options)});
    const at::Tensor context_RD = made.out_BQHd.reshape({-1, D});
    const at::Tensor dense_RD = at::mm(context_RD, weights.output.weight.half.t());
    const gpu::Normed normed =
        gpu::norm_of_sum(dense_RD, weights.output.bias.value, asked_RD, weights.norm.weight.value,
                         weights.norm.shift.value, options.eps, drop_of(options.output_noise));
    variable_list saved{x_ND, joined_NE, query_RD, context_RD, normed.sum_ND, normed.stats_N2};
    saved.insert(saved.end(), made.kept.begin(), made.kept.end());
    ctx->save_for_backward(saved);
    ctx->saved_data["weights"] = fast::hold(weights);
    ctx->saved_data["options"] = fast::hold(options);
    return normed.out_ND.view({B, -1, D});
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto& weights = fast::held<AttentionWeights>(ctx->saved_data["weights"]);
    const auto& options = fast::held<AttentionOptions>(ctx->saved_data["options"]);
    const at::Tensor &x_ND = saved[0], &joined_NE = saved[1], &query_RD = saved[2], &context_RD = saved[3];
    const int64_t B = grads[0].size(0), D = grads[0].size(2), H = options.heads;
    const int64_t parts = options.first_only ? 2 : 3;
    const gpu::NormGrads norm =
        gpu::norm_of_sum_grads(grads[0].contiguous().view({-1, D}), {{}, saved[4], saved[5]},
                               weights.norm.weight.value, drop_of(options.output_noise),
                               weights.norm.weight.grad, weights.norm.shift.grad, weights.output.bias.grad);
    const at::Tensor context_grad_RD = at::mm(norm.dense_ND, weights.output.weight.half);
    gpu::add_product(weights.output.weight.grad, norm.dense_ND, context_RD);

    const auto by_head = [&](const at::Tensor& y) { return y.view({B, -1, H, D / H}); };
    const at::Tensor v = part(joined_NE, B, H, parts, 0), k = part(joined_NE, B, H, parts, 1);
    const at::Tensor q = options.first_only ? part(query_RD, B, H, 1, 0) : part(joined_NE, B, H, parts, 2);
    const Attended made{by_head(context_RD), variable_list(saved.begin() + 6, saved.end())};
    const auto [q_RD, k_ND, v_ND] =
        attention_grads(by_head(context_grad_RD), q, k, v, made, {.dropout = dropout(options)});

    variable_list result(14);
    if (options.first_only) {
      const at::Tensor asked_RD = x_ND.view({B, -1, D}).select(1, 0);
      const at::Tensor joined =
          gpu::join_and_sum({v_ND, k_ND}, {weights.value.bias.grad, weights.key.bias.grad});
      at::Tensor x_grad_ND = at::mm(joined, weights.joined(parts));
      add_products(weights, joined, x_ND, parts);
      gpu::join_and_sum({q_RD}, {weights.query.bias.grad});
      gpu::add_product(weights.query.weight.grad, q_RD, asked_RD);
      at::Tensor first_RD = norm.sum_ND;
      first_RD.addmm_(q_RD, weights.query.weight.half);
      x_grad_ND.view({B, -1, D}).select(1, 0).add_(first_RD);
      result[0] = x_grad_ND.view({B, -1, D});
    } else {
      const at::Tensor joined = gpu::join_and_sum(
          {v_ND, k_ND, q_RD}, {weights.value.bias.grad, weights.key.bias.grad, weights.query.bias.grad});
      add_products(weights, joined, x_ND, parts);
      at::Tensor x_grad_ND = norm.sum_ND;
      x_grad_ND.addmm_(joined, weights.joined(parts));
      result[0] = x_grad_ND.view(grads[0].sizes());
    }
    return result;
  }

  static double dropout(const AttentionOptions& options) { return options.probs_noise.drop_below * 0x1p-32; }

  /// The gradients of the first of value, key and query.
  static void add_products(const AttentionWeights& weights, const at::Tensor& joined_NE,
                           const at::Tensor& x_ND, int64_t parts) {
    const int64_t D = x_ND.size(1);
    const at::Tensor* const grads[] = {&weights.value.weight.grad, &weights.key.weight.grad,
                                       &weights.query.weight.grad};
    for (int64_t i = 0; i < parts; ++i) gpu::add_product(*grads[i], joined_NE.narrow(1, i * D, D), x_ND);
  }
};

}  // namespace

bool can_run(const AttentionParams& params, const at::Tensor& x_BLD, const AttentionOptions& options) {
  if (!x_BLD.is_cuda() || x_BLD.scalar_type() != at::kBFloat16 || x_BLD.numel() == 0) return false;
  const int64_t D = x_BLD.size(2);
  if (!has_copies({params.query, params.key, params.value, params.output}, params.norm) || !gpu::takes(D) ||
      !takes_heads(D, options.heads) || !can_draw(options.output_noise)) {
    return false;
  }
  const AttentionWeights weights(params);
  return neighbours(weights.value.weight.half, weights.key.weight.half) &&
         neighbours(weights.key.weight.half, weights.query.weight.half) &&
         neighbours(weights.value.bias.half, weights.key.bias.half) &&
         neighbours(weights.key.bias.half, weights.query.bias.half);
}

at::Tensor attend(const AttentionParams& params, const at::Tensor& x_BLD, const at::Tensor& mask_BL,
                  const AttentionOptions& options) {
  return Attend::apply(x_BLD, Mask{mask_BL}, AttentionWeights(params), options, params.query.weight,
                       params.query.bias, params.key.weight, params.key.bias, params.value.weight,
                       params.value.bias, params.output.weight, params.output.bias, params.norm.weight,
                       params.norm.bias);
}

}  // namespace syncopate::nn::on_gpu
