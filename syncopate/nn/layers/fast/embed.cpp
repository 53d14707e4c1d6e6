#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "syncopate/nn/layers/fast/layers.h"
#include "syncopate/nn/layers/fast/support.h"

namespace syncopate::nn::fast {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What is looked up in the tables, row by row: of a packed batch those of real tokens.
struct EmbedRows {
  at::Tensor words, types, positions;  ///< int64, [N]
};

EmbedRows rows_of_batch(const at::Tensor& ids_BL, const at::Tensor& types_BL, const Packing* packing) {
  const at::Tensor words = ids_BL.contiguous().view({-1}), types = types_BL.contiguous().view({-1});
  if (packing != nullptr) {
    return {words.index_select(0, packing->places_N), types.index_select(0, packing->places_N),
            packing->positions_N};
  }
  return {words, types, at::arange(ids_BL.size(1), at::kLong).repeat({ids_BL.size(0)})};
}

kernels::EmbedJob embed_job(const EmbedRows& rows, const at::Tensor& word_VD, const at::Tensor& position_PD,
                            const at::Tensor& type_TD, const at::Tensor& weight_D, const at::Tensor& stats_N2,
                            const EmbeddingOptions& options) {
  kernels::EmbedJob job;
  job.width = word_VD.size(1);
  job.eps = static_cast<float>(options.eps);
  job.noise = noise_job(options.noise);
  job.ids = rows.words.data_ptr<int64_t>();
  job.types = rows.types.data_ptr<int64_t>();
  job.places = rows.positions.data_ptr<int64_t>();
  job.word = word_VD.data_ptr<float>();
  job.position = position_PD.data_ptr<float>();
  job.type = type_TD.data_ptr<float>();
  job.weight = weight_D.data_ptr<float>();
  job.stats = stats_N2.data_ptr<float>();
  return job;
}

/// table_grad[numbers[row]] += grad[row], in the order of the rows.
void add_to_rows(const at::Tensor& table_grad, const at::Tensor& numbers, const at::Tensor& grad_ND) {
  const int64_t D = grad_ND.size(1);
  const int64_t* to = numbers.data_ptr<int64_t>();
  for (int64_t row = 0; row < grad_ND.size(0); ++row) {
    kernels::kernels().add_rows(grad_ND.data_ptr<float>(), D, row, row + 1,
                                table_grad.data_ptr<float>() + to[row] * D);
  }
}

/// The sum before the norm is not kept: the backward pass gathers it again.
struct Embed : torch::autograd::Function<Embed> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& word_VD, const at::Tensor& position_PD,
                            const at::Tensor& type_TD, const at::Tensor& weight_D, const at::Tensor& shift_D,
                            const EmbedRows& rows, const EmbeddingOptions& options) {
    const int64_t N = rows.words.size(0), D = word_VD.size(1);
    const at::Tensor out_ND = at::empty({N, D}, word_VD.options().requires_grad(false));
    const at::Tensor stats_N2 = at::empty({N, 2}, out_ND.options());
    kernels::EmbedJob job = embed_job(rows, word_VD, position_PD, type_TD, weight_D, stats_N2, options);
    job.shift = shift_D.data_ptr<float>();
    job.out = out_ND.data_ptr<float>();
    for_rows(N, D, [&](int64_t first, int64_t last) { kernels::kernels().embed(job, first, last); });
    ctx->save_for_backward({word_VD, position_PD, type_TD, weight_D, stats_N2});
    ctx->saved_data["rows"] = hold(rows);
    ctx->saved_data["options"] = hold(options);
    return out_ND;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &word_VD = saved[0], &position_PD = saved[1], &type_TD = saved[2], &weight_D = saved[3];
    const at::Tensor& stats_N2 = saved[4];
    const auto& rows = held<EmbedRows>(ctx->saved_data["rows"]);
    const auto& options = held<EmbeddingOptions>(ctx->saved_data["options"]);
    const int64_t N = rows.words.size(0), D = word_VD.size(1);

    const at::Tensor grad_out = grads[0].contiguous();
    const at::Tensor grad_ND = at::empty({N, D}, grad_out.options());
    kernels::EmbedJob job = embed_job(rows, word_VD, position_PD, type_TD, weight_D, stats_N2, options);
    job.grad_out = grad_out.data_ptr<float>();
    job.grad_sum = grad_ND.data_ptr<float>();
    const at::Tensor sums = sum_over_rows(N, 2 * D, [&](int64_t first, int64_t last, float* part) {
      kernels::kernels().embed_grad(job, first, last, part, part + D);
    });
    const at::Tensor position_grad = at::zeros_like(position_PD);
    add_to_rows(position_grad, rows.positions, grad_ND);
    const at::Tensor type_grad = at::zeros_like(type_TD);
    add_to_rows(type_grad, rows.types, grad_ND);
    return {word_grad(word_VD, rows.words, grad_ND, options.pad_token),
            position_grad,
            type_grad,
            sums.narrow(0, 0, D),
            sums.narrow(0, D, D),
            at::Tensor(),
            at::Tensor()};
  }

  /// Overwrites the rows of the padding word with zeros.
  static at::Tensor word_grad(const at::Tensor& word_VD, const at::Tensor& words_N, const at::Tensor& grad_ND,
                              int64_t pad_token) {
    const int64_t N = grad_ND.size(0), D = grad_ND.size(1);
    const int64_t* ids = words_N.data_ptr<int64_t>();
    float* grad = grad_ND.data_ptr<float>();
    for (int64_t row = 0; row < N; ++row) {
      if (ids[row] == pad_token) std::fill_n(grad + row * D, D, 0.0f);
    }
    if (word_VD.grad().defined() && !word_VD.grad().is_sparse()) {
      return at::_sparse_coo_tensor_unsafe(words_N.view({1, N}), grad_ND, word_VD.sizes());
    }
    at::Tensor dense = at::zeros_like(word_VD);
    add_to_rows(dense, words_N, grad_ND);
    return dense;
  }
};

}  // namespace

at::Tensor embed(const EmbeddingParams& params, const at::Tensor& ids_BL, const at::Tensor& types_BL,
                 const EmbeddingOptions& options) {
  const at::Tensor out_ND =
      Embed::apply(params.word, params.position, params.type, params.norm.weight, params.norm.bias,
                   rows_of_batch(ids_BL, types_BL, options.packed.get()), options);
  if (options.packed) return out_ND.unsqueeze(0);
  return out_ND.view({ids_BL.size(0), ids_BL.size(1), -1});
}

}  // namespace syncopate::nn::fast
