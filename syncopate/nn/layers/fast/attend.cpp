#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "syncopate/nn/layers/fast/layers.h"
#include "syncopate/nn/layers/fast/norm.h"
#include "syncopate/nn/layers/fast/support.h"
#include "syncopate/nn/layers/product.h"

namespace syncopate::nn::fast {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Queries beside keys and values: columns of one tensor when every position is asked for, so that one
/// product makes them; a tensor apart when only the first of each example is.
struct Projections {
  at::Tensor q;   ///< [N, 3D] (its first D columns are the queries) or [B, D]
  at::Tensor kv;  ///< the same tensor, or [N, 2D]

  bool joined() const { return q.is_same(kv); }
  const float* q_data() const { return q.data_ptr<float>(); }
  const float* k_data() const { return kv.data_ptr<float>() + (joined() ? q.size(1) / 3 : 0); }
  const float* v_data() const { return k_data() + (joined() ? q.size(1) / 3 : kv.size(1) / 2); }
};

/// How many examples there are and how long they are; of packed ones how long they would be padded.
struct Extent {
  const Packing* packing;
  int64_t B, L, Q, D;

  Extent(const at::Tensor& x, const AttentionOptions& options)
      : packing(options.packed.get()),
        B(packing != nullptr ? packing->examples() : x.size(0)),
        L(packing != nullptr ? packing->length : x.size(1)),
        Q(options.first_only ? 1 : L),
        D(x.size(2)) {}

  /// The first position's rows of what has a row for every position.
  at::Tensor firsts(const at::Tensor& rows_ND) const {
    return packing != nullptr ? rows_ND.index_select(0, packing->firsts_B)
                              : rows_ND.view({B, L, D}).select(1, 0);
  }
  /// Whether the rows asked for are fewer than those there are.
  bool some() const { return Q < L; }
  int64_t asked() const {
    if (packing == nullptr) return B * Q;
    return some() ? B : packing->rows();
  }
  /// Elements of one head's probabilities, over all examples.
  int64_t area() const {
    if (packing == nullptr) return B * Q * L;
    return some() ? packing->starts.back() : packing->areas.back();
  }
};

kernels::AttentionJob attention_job(const Projections& made, const Extent& extent,
                                    const AttentionOptions& options, tensor::Precision precision) {
  kernels::AttentionJob job =
      attention_shape(options.heads, extent.D, extent.Q, extent.L, options.probs_noise, precision);
  if (extent.packing != nullptr) {
    job.starts = extent.packing->starts.data();
    job.areas = (extent.some() ? extent.packing->starts : extent.packing->areas).data();
  }
  job.q = made.q_data();
  job.k = made.k_data();
  job.v = made.v_data();
  job.q_stride = made.q.size(1);
  job.kv_stride = made.kv.size(1);
  return job;
}

struct Attend : torch::autograd::Function<Attend> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_BLD, const at::Tensor& query_DD,
                            const at::Tensor& query_bias_D, const at::Tensor& key_DD,
                            const at::Tensor& key_bias_D, const at::Tensor& value_DD,
                            const at::Tensor& value_bias_D, const at::Tensor& output_DD,
                            const at::Tensor& output_bias_D, const at::Tensor& weight_D,
                            const at::Tensor& shift_D, const float* mask_BL, const AttentionOptions& options,
                            bool keep) {
    const Extent extent(x_BLD, options);
    const int64_t D = extent.D;
    const at::Tensor x_ND = x_BLD.view({-1, D});
    const at::Tensor asked_MD = options.first_only ? extent.firsts(x_ND) : x_ND;
    const tensor::Precision precision = tensor::cpu_precision();
    Projections made;
    if (options.first_only) {
      made.q = product(query_bias_D, asked_MD, query_DD.t(), precision);
      made.kv =
          product(at::cat({key_bias_D, value_bias_D}), x_ND, at::cat({key_DD, value_DD}).t(), precision);
    } else {
      made.q = product(at::cat({query_bias_D, key_bias_D, value_bias_D}), x_ND,
                       at::cat({query_DD, key_DD, value_DD}).t(), precision);
      made.kv = made.q;
    }
    kernels::AttentionJob job = attention_job(made, extent, options, precision);
    const at::Tensor context_MD = at::empty({extent.asked(), D}, x_BLD.options());
    const at::Tensor probs =
        keep ? at::empty({extent.area() * options.heads}, x_BLD.options()) : at::Tensor();
    job.mask = mask_BL;
    job.probs = keep ? probs.data_ptr<float>() : nullptr;
    job.context = context_MD.data_ptr<float>();
    for_heads(extent.B, job, kernels::kernels().attention);

    const at::Tensor sum_MD = product(context_MD, output_DD.t(), precision);
    const Normed normed = norm_sum(sum_MD, output_bias_D, asked_MD, asked_MD.stride(0), weight_D, shift_D,
                                   options.eps, options.output_noise);
    ctx->save_for_backward({x_BLD, query_DD, key_DD, value_DD, output_DD, weight_D, made.q,
                            made.joined() ? at::Tensor() : made.kv, probs, context_MD, sum_MD,
                            normed.stats_N2});
    ctx->saved_data["options"] = hold(options);
    ctx->saved_data["precision"] = hold(precision);
    return options.first_only ? normed.out_ND.unsqueeze(1) : normed.out_ND.view(x_BLD.sizes());
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x_BLD = saved[0], &query_DD = saved[1], &key_DD = saved[2], &value_DD = saved[3];
    const at::Tensor &output_DD = saved[4], &weight_D = saved[5], &probs = saved[8], &context_MD = saved[9];
    const at::Tensor &sum_MD = saved[10], &stats_M2 = saved[11];
    const Projections made = {saved[6], saved[7].defined() ? saved[7] : saved[6]};
    const auto& options = held<AttentionOptions>(ctx->saved_data["options"]);
    const auto precision = held<tensor::Precision>(ctx->saved_data["precision"]);
    const Extent extent(x_BLD, options);
    const int64_t D = extent.D;
    const at::Tensor x_ND = x_BLD.view({-1, D});

    const NormSumGrads norm =
        norm_sum_grads(grads[0].contiguous(), sum_MD, stats_M2, weight_D, options.output_noise);
    const at::Tensor output_grad = product(norm.dense_ND.t(), context_MD, precision);
    const at::Tensor context_grad_MD = product(norm.dense_ND, output_DD, precision);

    const at::Tensor q_grad = at::empty_like(made.q);
    const Projections made_grad = {q_grad, made.joined() ? q_grad : at::empty_like(made.kv)};
    kernels::AttentionJob job = attention_job(made, extent, options, precision);
    job.probs = probs.data_ptr<float>();
    job.grad_context = context_grad_MD.data_ptr<float>();
    job.grad_q = const_cast<float*>(made_grad.q_data());
    job.grad_k = const_cast<float*>(made_grad.k_data());
    job.grad_v = const_cast<float*>(made_grad.v_data());
    for_heads(extent.B, job, kernels::kernels().attention_grad);

    const auto bias_of = [](const at::Tensor& grad) {
      return sum_over_rows(grad.size(0), grad.size(1), [&](int64_t first, int64_t last, float* sums) {
        kernels::kernels().add_rows(grad.data_ptr<float>(), grad.size(1), first, last, sums);
      });
    };
    const at::Tensor kv_weight = product(made_grad.kv.t(), x_ND, precision), kv_bias = bias_of(made_grad.kv);
    const int64_t k_at = made.joined() ? D : 0;
    at::Tensor x_grad, query_grad, query_bias_grad;
    if (made.joined()) {
      x_grad = norm.sum_ND;
      add_product(x_grad, made_grad.q, at::cat({query_DD, key_DD, value_DD}), precision);
      query_grad = kv_weight.narrow(0, 0, D);
      query_bias_grad = kv_bias.narrow(0, 0, D);
    } else {
      x_grad = product(made_grad.kv, at::cat({key_DD, value_DD}), precision);
      const at::Tensor first_grad_BD = norm.sum_ND;
      add_product(first_grad_BD, made_grad.q, query_DD, precision);
      if (extent.packing != nullptr) {
        x_grad.index_add_(0, extent.packing->firsts_B, first_grad_BD);
      } else {
        extent.firsts(x_grad).add_(first_grad_BD);
      }
      query_grad = product(made_grad.q.t(), extent.firsts(x_ND), precision);
      query_bias_grad = bias_of(made_grad.q);
    }
    return {x_grad.view(x_BLD.sizes()),
            query_grad,
            query_bias_grad,
            kv_weight.narrow(0, k_at, D),
            kv_bias.narrow(0, k_at, D),
            kv_weight.narrow(0, k_at + D, D),
            kv_bias.narrow(0, k_at + D, D),
            output_grad,
            norm.bias_D,
            norm.weight_D,
            norm.shift_D,
            at::Tensor(),
            at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor attend(const AttentionParams& params, const at::Tensor& x_BLD, const at::Tensor& mask_BL,
                  const AttentionOptions& options) {
  const float* mask =
      mask_BL.defined() ? mask_BL.data_ptr<float>() : nullptr;  // an autograd node takes no absent tensor
  return Attend::apply(x_BLD, params.query.weight, params.query.bias, params.key.weight, params.key.bias,
                       params.value.weight, params.value.bias, params.output.weight, params.output.bias,
                       params.norm.weight, params.norm.bias, mask, options, at::GradMode::is_enabled());
}

}  // namespace syncopate::nn::fast
