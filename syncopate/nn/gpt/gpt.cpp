#include "syncopate/nn/gpt/gpt.h"

#include <ATen/ATen.h>

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/nn/layers/batch_tokens.h"
#include "syncopate/nn/layers/causal_attention.h"
#include "syncopate/nn/layers/cross_entropy.h"
#include "syncopate/nn/layers/drop.h"
#include "syncopate/nn/layers/head_loss.h"
#include "syncopate/nn/layers/initialize.h"
#include "syncopate/nn/layers/product.h"

namespace syncopate::nn {
namespace {

/// Where a block's dropouts draw their noise; the embeddings have site 0.
enum Site : int64_t { kProbs, kAttended, kFed, kSitesPerBlock };

constexpr const char* kWordTable = "transformer.wte.weight";

/// Weights are [in, out], as Hugging Face keeps GPT-2's.
LinearParams input_first(int64_t in, int64_t out) { return {parameter({in, out}), parameter({out})}; }

}  // namespace

Gpt::Gpt(const GptConfig& config) : config_(config) {
  config_.validate();
  const int64_t D = config_.hidden, F = config_.ffn;
  words_VD_ = parameter({config_.vocab_size, D});
  positions_PD_ = parameter({config_.max_positions, D});
  for (int64_t i = 0; i < config_.layers; ++i) {
    blocks_.push_back({norm_params(D), input_first(D, 3 * D), input_first(D, D), norm_params(D),
                       input_first(D, F), input_first(F, D)});
  }
  last_norm_ = norm_params(D);
}

std::vector<tensor::NamedTensor> Gpt::parameters(LayerRange range) const {
  std::vector<tensor::NamedTensor> all;
  const auto add = [&](const std::string& name, const auto& pair) {
    all.push_back({name + ".weight", pair.weight});
    all.push_back({name + ".bias", pair.bias});
  };
  if (range.has(0)) {
    all.push_back({kWordTable, words_VD_});
    all.push_back({"transformer.wpe.weight", positions_PD_});
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (!range.has(static_cast<int>(i) + 1)) continue;
    const std::string block = fmt::format("transformer.h.{}.", i);
    add(block + "ln_1", blocks_[i].norm_1);
    add(block + "attn.c_attn", blocks_[i].qkv);
    add(block + "attn.c_proj", blocks_[i].attended);
    add(block + "ln_2", blocks_[i].norm_2);
    add(block + "mlp.c_fc", blocks_[i].up);
    add(block + "mlp.c_proj", blocks_[i].down);
  }
  if (range.has(depth() - 1)) add("transformer.ln_f", last_norm_);
  return all;
}

std::vector<tensor::NamedTensor> Gpt::tied() const { return {{kWordTable, words_VD_}}; }

void Gpt::stand_in_for_tied(std::vector<at::Tensor> tensors) {
  check(tensors.size() <= 1, "one tensor for the table of words");
  stand_in_ = tensors.empty() ? at::Tensor() : tensors.front();
}

at::Tensor Gpt::empty_hidden(const Batch& batch, int layer) const {
  return empty_states(batch, layer, depth(), config_.hidden);
}

int64_t Gpt::count(const Batch& batch) const {
  const at::Tensor& labels_BL = batch.at("labels");
  return labels_asked(labels_BL.slice(1, 1));  // the first token is predicted from nothing
}

void Gpt::set_dropout(double rate) {
  config_.set_dropout(rate);
  config_.validate();
}

Noise Gpt::noise(int64_t site, double rate, const Batch& batch) const {
  if (!mode_.training || rate <= 0) return {};
  Noise made = make_noise(mix_key(mode_.noise_key, site), rate);
  made.rows = rows_BL_;
  made.site = site;
  made.device = device_rows(batch, batch.at("input_ids").size(1));
  return made;
}

at::Tensor Gpt::embed_batch(const Batch& batch) const {
  const at::Tensor& ids_BL = batch.at("input_ids");
  check_tokens(ids_BL, config_.max_positions, config_.vocab_size, "use this model's tokenizer");
  const Noise drawn = noise(0, config_.embedding_dropout, batch);
  if (!plain_ && on_gpu::can_embed(words_VD_, positions_PD_, ids_BL, drawn))
    return on_gpu::embed(words_VD_, positions_PD_, ids_BL, drawn);
  // The head's gradient of the same table is dense and comes first: on the CPU only the rows used are added.
  const bool sparse = words_VD_.is_cpu() && words_VD_.grad().defined();
  const at::Tensor sum_BLD =
      at::embedding(words_VD_, ids_BL, -1, false, sparse) + positions_PD_.narrow(0, 0, ids_BL.size(1));
  return plain_ ? apply_noise(sum_BLD, drawn) : drop(sum_BLD, drawn);
}

at::Tensor Gpt::run_block(int64_t number, const at::Tensor& x_BLD, const at::Tensor& mask_BL,
                          const Batch& batch) const {
  const Block& block = blocks_[static_cast<size_t>(number)];
  const int64_t site = 1 + number * kSitesPerBlock;
  const CausalBlockOptions options{.heads = config_.heads,
                                   .eps = config_.layer_norm_eps,
                                   .activation = config_.activation,
                                   .causal = causal_,
                                   .probs_noise = noise(site + kProbs, config_.attention_dropout, batch),
                                   .attended_noise = noise(site + kAttended, config_.residual_dropout, batch),
                                   .fed_noise = noise(site + kFed, config_.residual_dropout, batch)};
  if (!plain_ && !mask_BL.defined() && on_gpu::can_run(block, x_BLD, options))
    return on_gpu::causal_block(block, x_BLD, options);
  const auto norm = [&](const at::Tensor& x, const NormParams& params) {
    return at::layer_norm(x, {config_.hidden}, params.weight, params.bias, config_.layer_norm_eps);
  };
  const auto apply = [](const LinearParams& params, const at::Tensor& x) {
    return project_input_first(x, params.weight, params.bias);
  };
  const auto join = [&](const at::Tensor& residual, const at::Tensor& x, const Noise& drawn) {
    return plain_ ? residual + apply_noise(x, drawn) : add_dropped(residual, x, drawn);
  };
  const at::Tensor qkv_BLE = apply(block.qkv, norm(x_BLD, block.norm_1));
  const at::Tensor context_BLD = causal_attention(
      qkv_BLE, mask_BL,
      {.heads = config_.heads, .noise = options.probs_noise, .causal = causal_, .plain = plain_});
  const at::Tensor y_BLD = join(x_BLD, apply(block.attended, context_BLD), options.attended_noise);
  const at::Tensor up_BLF = apply(block.up, norm(y_BLD, block.norm_2));
  const at::Tensor active_BLF = at::gelu(up_BLF, gelu_kind(config_.activation));
  return join(y_BLD, apply(block.down, active_BLF), options.fed_noise);
}

at::Tensor Gpt::forward(at::Tensor hidden, const Batch& batch, LayerRange range) {
  check(0 <= range.first && range.first <= range.last && range.last <= depth(),
        "a range of layers the model lacks");
  const at::Tensor& ids_BL = batch.at("input_ids");
  rows_BL_ = mode_.training && ids_BL.is_cpu() ? rows_of(batch, ids_BL) : NoiseRows();
  const at::Tensor mask_BL = additive_mask(batch, ids_BL.options().dtype(words_VD_.dtype()));
  for (int i = range.first; i < range.last; ++i) {
    if (mode_.training) seed_device_noise(ids_BL.device(), mix_key(mode_.noise_key, i), batch.ids);
    if (i == 0) {
      hidden = embed_batch(batch);
    } else if (i + 1 < depth()) {
      hidden = run_block(i - 1, hidden, mask_BL, batch);
    } else {
      hidden = !plain_ && on_gpu::can_norm(last_norm_, hidden)
                   ? on_gpu::norm(last_norm_, hidden, config_.layer_norm_eps)
                   : at::layer_norm(hidden, {config_.hidden}, last_norm_.weight, last_norm_.bias,
                                    config_.layer_norm_eps);
      if (!loss_makes_logits()) hidden = project(hidden, head_table(), {});
    }
  }
  return hidden;
}

Loss Gpt::loss(const at::Tensor& output_BLX, const Batch& batch) const {
  const at::Tensor& labels_BL = batch.at("labels");
  if (labels_BL.dim() != 2 || labels_BL.sizes() != output_BLX.sizes().slice(0, 2)) {
    throw DataError("a batch for a language model needs one label for each token; check the task");
  }
  check(output_BLX.size(2) == (loss_makes_logits() ? config_.hidden : config_.vocab_size),
        "the mode changed between a forward pass and its loss");
  // What position l predicts is compared with label l + 1; the last one predicts nothing.
  const int64_t B = labels_BL.size(0), L = labels_BL.size(1);
  const at::Tensor targets_BL = at::full_like(labels_BL, kNoLabel);
  if (L > 1) targets_BL.narrow(1, 0, L - 1).copy_(labels_BL.narrow(1, 1, L - 1));
  const at::Tensor rows_NX = output_BLX.reshape({B * L, output_BLX.size(2)});
  const at::Tensor targets_N = targets_BL.view({B * L});
  return loss_makes_logits() ? head_loss(rows_NX, head_table(), targets_N)
                             : cross_entropy(rows_NX, targets_N);
}

void Gpt::initialize(uint64_t seed) {
  const double residual = config_.initializer_range / std::sqrt(2.0 * static_cast<double>(config_.layers));
  uint64_t number = 0;
  for (const auto& [name, value] : parameters()) {
    const uint64_t key = mix_key(seed, number++);
    if (name.ends_with(".bias")) {
      value.detach().zero_();
    } else if (value.dim() == 1) {
      value.detach().fill_(1);
    } else {
      fill_normal(value, name.ends_with("c_proj.weight") ? residual : config_.initializer_range, key);
    }
  }
}

std::unique_ptr<Gpt> make_gpt(const GptConfig& config, uint64_t seed) {
  auto model = std::make_unique<Gpt>(config);
  model->initialize(seed);
  return model;
}

}  // namespace syncopate::nn
