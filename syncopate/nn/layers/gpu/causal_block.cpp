#include "syncopate/nn/layers/causal_block.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "syncopate/nn/layers/cross_entropy.h"
#include "syncopate/nn/layers/fast/support.h"
#include "syncopate/nn/layers/gpu/attention.h"
#include "syncopate/nn/layers/gpu/support.h"
#include "syncopate/tensor/half_weights.h"

namespace syncopate::nn::on_gpu {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct BlockWeights {
  explicit BlockWeights(const CausalBlockParams& params)
      : norm_1(params.norm_1),
        norm_2(params.norm_2),
        qkv(params.qkv),
        attended(params.attended),
        up(params.up),
        down(params.down) {}
  Norm norm_1, norm_2;
  Linear qkv, attended, up, down;
};

/// x W + bias, for weights [in, out].
at::Tensor product_with(const Linear& linear, const at::Tensor& x_NI) {
  return at::addmm(linear.bias.half, x_NI, linear.weight.half);
}

struct CausalBlock : torch::autograd::Function<CausalBlock> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_BLD, const BlockWeights& weights,
                            const CausalBlockOptions& options, const at::Tensor&, const at::Tensor&,
                            const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                            const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                            const at::Tensor&, const at::Tensor&) {
    const int64_t B = x_BLD.size(0), D = x_BLD.size(2), H = options.heads;
    const at::Tensor x_ND = x_BLD.view({-1, D});
    const gpu::Normed first =
        gpu::norm(x_ND, weights.norm_1.weight.value, weights.norm_1.shift.value, options.eps);
    const at::Tensor qkv_NE = product_with(weights.qkv, first.out_ND);
    const Attended made = attention(part(qkv_NE, B, H, 3, 0), part(qkv_NE, B, H, 3, 1),
                                    part(qkv_NE, B, H, 3, 2), {}, heads(options));
    const at::Tensor context_ND = made.out_BQHd.reshape({-1, D});
    const at::Tensor dense_ND = at::mm(context_ND, weights.attended.weight.half);
    const gpu::Normed second =
        gpu::norm_of_sum(dense_ND, weights.attended.bias.value, x_ND, weights.norm_2.weight.value,
                         weights.norm_2.shift.value, options.eps, drop_of(options.attended_noise));
    const at::Tensor up_NF = product_with(weights.up, second.out_ND);
    const at::Tensor active_NF = gpu::gelu(up_NF, is_tanh(options), {});
    const at::Tensor out_ND = gpu::add_dropped(second.sum_ND, at::mm(active_NF, weights.down.weight.half),
                                               weights.down.bias.value, drop_of(options.fed_noise));
    variable_list saved{x_ND,          first.out_ND,  first.stats_N2,  qkv_NE, context_ND,
                        second.out_ND, second.sum_ND, second.stats_N2, up_NF,  active_NF};
    saved.insert(saved.end(), made.kept.begin(), made.kept.end());
    ctx->save_for_backward(saved);
    ctx->saved_data["weights"] = fast::hold(weights);
    ctx->saved_data["options"] = fast::hold(options);
    return out_ND.view(x_BLD.sizes());
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto& weights = fast::held<BlockWeights>(ctx->saved_data["weights"]);
    const auto& options = fast::held<CausalBlockOptions>(ctx->saved_data["options"]);
    const at::Tensor &x_ND = saved[0], &normed_1 = saved[1], &stats_1 = saved[2], &qkv_NE = saved[3];
    const at::Tensor &context_ND = saved[4], &normed_2 = saved[5], &sum_2 = saved[6], &stats_2 = saved[7];
    const at::Tensor &up_NF = saved[8], &active_NF = saved[9];
    const int64_t B = grads[0].size(0), D = grads[0].size(2), H = options.heads;

    const at::Tensor out_ND = grads[0].contiguous().view({-1, D});
    const at::Tensor fed_ND =
        gpu::add_dropped_grad(out_ND, drop_of(options.fed_noise), weights.down.bias.grad);
    const at::Tensor inner_NF = at::mm(fed_ND, weights.down.weight.half.t());
    gpu::add_product(weights.down.weight.grad, active_NF, fed_ND);
    gpu::gelu_grad(inner_NF, up_NF, is_tanh(options), {}, weights.up.bias.grad);
    gpu::add_product(weights.up.weight.grad, normed_2, inner_NF);
    const gpu::NormGrads second = gpu::norm_of_sum_grads(
        at::mm(inner_NF, weights.up.weight.half.t()), {{}, sum_2, stats_2}, weights.norm_2.weight.value,
        drop_of(options.attended_noise), weights.norm_2.weight.grad, weights.norm_2.shift.grad,
        weights.attended.bias.grad, out_ND);

    const auto by_head = [&](const at::Tensor& y) { return y.view({B, -1, H, D / H}); };
    const at::Tensor context_grad_ND = at::mm(second.dense_ND, weights.attended.weight.half.t());
    gpu::add_product(weights.attended.weight.grad, context_ND, second.dense_ND);
    const Attended made{by_head(context_ND), variable_list(saved.begin() + 10, saved.end())};
    const auto [q_ND, k_ND, v_ND] =
        attention_grads(by_head(context_grad_ND), part(qkv_NE, B, H, 3, 0), part(qkv_NE, B, H, 3, 1),
                        part(qkv_NE, B, H, 3, 2), made, heads(options));
    const at::Tensor& bias_grad = weights.qkv.bias.grad;
    const at::Tensor joined_NE = gpu::join_and_sum(
        {q_ND, k_ND, v_ND},
        {bias_grad.narrow(0, 0, D), bias_grad.narrow(0, D, D), bias_grad.narrow(0, 2 * D, D)});
    gpu::add_product(weights.qkv.weight.grad, normed_1, joined_NE);
    const gpu::NormGrads first = gpu::norm_of_sum_grads(
        at::mm(joined_NE, weights.qkv.weight.half.t()), {{}, x_ND, stats_1}, weights.norm_1.weight.value, {},
        weights.norm_1.weight.grad, weights.norm_1.shift.grad, {}, second.sum_ND);
    variable_list result(15);
    result[0] = first.sum_ND.view(grads[0].sizes());
    return result;
  }

  static HeadOptions heads(const CausalBlockOptions& options) {
    return {.dropout = options.probs_noise.drop_below * 0x1p-32, .causal = options.causal};
  }
  static bool is_tanh(const CausalBlockOptions& options) {
    return options.activation == Activation::kGeluTanh;
  }
};

struct LastNorm : torch::autograd::Function<LastNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_BLD, const Norm& norm, double eps,
                            const at::Tensor&, const at::Tensor&) {
    const at::Tensor x_ND = x_BLD.view({-1, x_BLD.size(2)});
    const gpu::Normed made = gpu::norm(x_ND, norm.weight.value, norm.shift.value, eps);
    ctx->save_for_backward({x_ND, made.stats_N2});
    ctx->saved_data["norm"] = fast::hold(norm);
    return made.out_ND.view(x_BLD.sizes());
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto& norm = fast::held<Norm>(ctx->saved_data["norm"]);
    const gpu::NormGrads made =
        gpu::norm_of_sum_grads(grads[0].contiguous().view(saved[0].sizes()), {{}, saved[0], saved[1]},
                               norm.weight.value, {}, norm.weight.grad, norm.shift.grad, {});
    variable_list result(5);
    result[0] = made.sum_ND.view(grads[0].sizes());
    return result;
  }
};

/// The gradients are made together with the loss: logits are the largest thing of a language model, and are
/// not kept.
struct HeadLoss : torch::autograd::Function<HeadLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& hidden_ND, const Weight& table,
                            const at::Tensor& labels_N, const at::Tensor&) {
    const int64_t N = hidden_ND.size(0), V = table.half.size(0);
    const at::Tensor table_WD = widened(table.half);
    const int64_t W = table_WD.size(0), step = std::max<int64_t>(64, (int64_t{1} << 29) / W);
    const at::Tensor hidden_grad = at::empty_like(hidden_ND), losses_N = at::empty({N}, table.grad.options());
    const at::Tensor table_grad = at::empty({W, table.grad.size(1)}, table.grad.options());
    const at::Tensor room = at::empty({std::min(N, step), W}, hidden_ND.options());
    for (int64_t begin = 0; begin < N; begin += step) {
      const int64_t rows = std::min(step, N - begin);
      const at::Tensor part_RD = hidden_ND.narrow(0, begin, rows);
      at::Tensor logits_RW = room.narrow(0, 0, rows), grad_RD = hidden_grad.narrow(0, begin, rows);
      at::mm_out(logits_RW, part_RD, table_WD.t());
      losses_N.narrow(0, begin, rows)
          .copy_(gpu::cross_entropy(logits_RW, V, labels_N.narrow(0, begin, rows), kNoLabel));
      at::mm_out(grad_RD, logits_RW, table_WD);
      gpu::set_product(table_grad, logits_RW, part_RD, begin > 0);
    }
    ctx->save_for_backward({hidden_grad, table_grad});
    ctx->saved_data["table"] = fast::hold(table);
    return losses_N.sum();
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto& table = fast::held<Weight>(ctx->saved_data["table"]);
    at::Tensor(table.grad)
        .addcmul_(saved[1].narrow(0, 0, table.grad.size(0)), grads[0].to(saved[1].scalar_type()));
    return {saved[0] * grads[0].to(saved[0].scalar_type()), at::Tensor(), at::Tensor(), at::Tensor()};
  }

  /// Products are twice as fast where the number of words is a multiple of 64. What lies behind the table in
  /// memory stands in for words that do not exist: nobody looks at their logits, and their gradients are
  /// zero.
  static at::Tensor widened(const at::Tensor& half_VD) {
    const int64_t V = half_VD.size(0), D = half_VD.size(1), W = (V + 63) / 64 * 64;
    const auto there = static_cast<int64_t>(half_VD.storage().nbytes()) / half_VD.element_size();
    if (half_VD.storage_offset() + W * D > there) {
      return half_VD;
    }
    return half_VD.as_strided({W, D}, {D, 1});
  }
};

/// Whether rows of logits can be whole vectors.
bool has_room(const at::Tensor& half_VD) { return HeadLoss::widened(half_VD).size(0) % 8 == 0; }

}  // namespace

bool can_run(const CausalBlockParams& params, const at::Tensor& x_BLD, const CausalBlockOptions& options) {
  return x_BLD.is_cuda() && x_BLD.scalar_type() == at::kBFloat16 && x_BLD.numel() > 0 &&
         has_copies({params.qkv, params.attended, params.up, params.down}, params.norm_1) &&
         has_copies({}, params.norm_2) && gpu::takes(x_BLD.size(2)) && params.up.weight.size(1) % 8 == 0 &&
         takes_heads(x_BLD.size(2), options.heads) && can_draw(options.attended_noise) &&
         can_draw(options.fed_noise);
}

at::Tensor causal_block(const CausalBlockParams& params, const at::Tensor& x_BLD,
                        const CausalBlockOptions& options) {
  return CausalBlock::apply(x_BLD, BlockWeights(params), options, params.norm_1.weight, params.norm_1.bias,
                            params.qkv.weight, params.qkv.bias, params.attended.weight, params.attended.bias,
                            params.norm_2.weight, params.norm_2.bias, params.up.weight, params.up.bias,
                            params.down.weight, params.down.bias);
}

bool can_norm(const NormParams& params, const at::Tensor& x_BLD) {
  return x_BLD.is_cuda() && x_BLD.scalar_type() == at::kBFloat16 && x_BLD.numel() > 0 &&
         has_copies({}, params) && gpu::takes(x_BLD.size(2));
}

at::Tensor norm(const NormParams& params, const at::Tensor& x_BLD, double eps) {
  return LastNorm::apply(x_BLD, Norm(params), eps, params.weight, params.bias);
}

bool can_make_logits(const at::Tensor& table_VD, const at::Tensor& hidden_ND) {
  return hidden_ND.is_cuda() && hidden_ND.scalar_type() == at::kBFloat16 && hidden_ND.numel() > 0 &&
         table_VD.is_leaf() && has_copy(table_VD) && has_room(tensor::half_of(table_VD));
}

at::Tensor head_loss(const at::Tensor& hidden_ND, const at::Tensor& table_VD, const at::Tensor& labels_N) {
  return HeadLoss::apply(hidden_ND.contiguous(), Weight(table_VD), labels_N.contiguous(), table_VD);
}

}  // namespace syncopate::nn::on_gpu
