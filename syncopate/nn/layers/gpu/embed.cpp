#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "syncopate/nn/layers/causal_block.h"
#include "syncopate/nn/layers/fast/support.h"
#include "syncopate/nn/layers/gpu/layers.h"
#include "syncopate/nn/layers/gpu/support.h"

namespace syncopate::nn::on_gpu {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct EmbeddingGrads {
  gpu::Tables tables;
  at::Tensor weight_D, shift_D;
};

struct Embed : torch::autograd::Function<Embed> {
  static at::Tensor forward(AutogradContext* ctx, const gpu::Embedding& embedding,
                            const EmbeddingGrads& grads, const at::Tensor&, const at::Tensor&,
                            const at::Tensor&, const at::Tensor&, const at::Tensor&) {
    const gpu::Embedded made = gpu::embed(embedding);
    ctx->saved_data["embedding"] = fast::hold(embedding);
    ctx->saved_data["grads"] = fast::hold(grads);
    ctx->save_for_backward({made.stats_N2});
    return made.out_BLD;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto& embedding = fast::held<gpu::Embedding>(ctx->saved_data["embedding"]);
    const auto& into = fast::held<EmbeddingGrads>(ctx->saved_data["grads"]);
    gpu::embed_grads(grads[0].contiguous(), embedding, ctx->get_saved_variables()[0], into.tables,
                     into.weight_D, into.shift_D);
    return variable_list(7);
  }
};

}  // namespace

bool can_run(const EmbeddingParams& params, const at::Tensor& ids_BL, const EmbeddingOptions& options) {
  return ids_BL.is_cuda() && ids_BL.numel() > 0 && ids_BL.is_contiguous() && has_copies({}, params.norm) &&
         has_copy(params.word) && has_copy(params.position) && has_copy(params.type) &&
         gpu::takes(params.word.size(1)) && !options.packed && can_draw(options.noise);
}

at::Tensor embed(const EmbeddingParams& params, const at::Tensor& ids_BL, const at::Tensor& types_BL,
                 const EmbeddingOptions& options) {
  const Weight word(params.word), position(params.position), type(params.type);
  const Norm norm(params.norm);
  return Embed::apply(
      gpu::Embedding{.ids_BL = ids_BL,
                     .types_BL = types_BL.contiguous(),
                     .tables = {word.half, position.half, type.half},
                     .weight_D = norm.weight.value,
                     .shift_D = norm.shift.value,
                     .pad_token = options.pad_token,
                     .eps = options.eps,
                     .drop = drop_of(options.noise)},
      EmbeddingGrads{{word.grad, position.grad, type.grad}, norm.weight.grad, norm.shift.grad}, params.word,
      params.position, params.type, params.norm.weight, params.norm.bias);
}

bool can_embed(const at::Tensor& words_VD, const at::Tensor& positions_PD, const at::Tensor& ids_BL,
               const Noise& noise) {
  return ids_BL.is_cuda() && ids_BL.numel() > 0 && ids_BL.is_contiguous() && has_copy(words_VD) &&
         has_copy(positions_PD) && gpu::takes(words_VD.size(1)) && can_draw(noise);
}

at::Tensor embed(const at::Tensor& words_VD, const at::Tensor& positions_PD, const at::Tensor& ids_BL,
                 const Noise& noise) {
  const Weight word(words_VD), position(positions_PD);
  return Embed::apply(
      gpu::Embedding{.ids_BL = ids_BL, .tables = {word.half, position.half, {}}, .drop = drop_of(noise)},
      EmbeddingGrads{{word.grad, position.grad, {}}, {}, {}}, words_VD, positions_PD, positions_PD,
      positions_PD, positions_PD);
}

}  // namespace syncopate::nn::on_gpu
