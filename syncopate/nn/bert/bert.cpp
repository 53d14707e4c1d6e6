#include "syncopate/nn/bert/bert.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/nn/layers/batch_tokens.h"
#include "syncopate/nn/layers/fast/support.h"
#include "syncopate/nn/layers/initialize.h"
#include "syncopate/nn/layers/layers_plain.h"

namespace syncopate::nn {
namespace {

/// Where a layer's dropouts draw their noise; the embeddings have site 0, the head the one after the last
/// layer's.
enum Site : int64_t { kProbs, kAttentionOutput, kInner, kFeedForwardOutput, kSitesPerLayer };

constexpr const char* kWordTable = "bert.embeddings.word_embeddings.weight";

}  // namespace

Bert::Bert(const BertConfig& config, Reads reads) : config_(config), reads_(reads) {
  config_.validate();
  const int64_t D = config_.hidden, F = config_.ffn;
  embeddings_ = {parameter({config_.vocab_size, D}), parameter({config_.max_positions, D}),
                 parameter({config_.type_vocab, D}), norm_params(D)};
  for (int64_t i = 0; i < config_.layers; ++i) {
    const AttentionParams attention = {linear_params(D, D), linear_params(D, D), linear_params(D, D),
                                       linear_params(D, D), norm_params(D)};
    layers_.push_back({attention, {linear_params(F, D), linear_params(D, F), norm_params(D)}});
  }
}

std::vector<tensor::NamedTensor> Bert::parameters(LayerRange range) const {
  std::vector<tensor::NamedTensor> all;
  const auto add = [&](const std::string& name, const auto& pair) {
    all.push_back({name + ".weight", pair.weight});
    all.push_back({name + ".bias", pair.bias});
  };
  if (range.has(0)) {
    all.push_back({kWordTable, embeddings_.word});
    all.push_back({"bert.embeddings.position_embeddings.weight", embeddings_.position});
    all.push_back({"bert.embeddings.token_type_embeddings.weight", embeddings_.type});
    add("bert.embeddings.LayerNorm", embeddings_.norm);
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (!range.has(static_cast<int>(i) + 1)) continue;
    const std::string layer = fmt::format("bert.encoder.layer.{}.", i);
    add(layer + "attention.self.query", layers_[i].attention.query);
    add(layer + "attention.self.key", layers_[i].attention.key);
    add(layer + "attention.self.value", layers_[i].attention.value);
    add(layer + "attention.output.dense", layers_[i].attention.output);
    add(layer + "attention.output.LayerNorm", layers_[i].attention.norm);
    add(layer + "intermediate.dense", layers_[i].feed_forward.up);
    add(layer + "output.dense", layers_[i].feed_forward.down);
    add(layer + "output.LayerNorm", layers_[i].feed_forward.norm);
  }
  if (range.has(depth() - 1)) {
    for (const auto& named : head_parameters()) all.push_back(named);
  }
  return all;
}

std::vector<tensor::NamedTensor> Bert::tied() const {
  if (reads_ != Reads::kMasked) return {};
  return {{kWordTable, embeddings_.word}};
}

void Bert::stand_in_for_tied(std::vector<at::Tensor> tensors) {
  check(tensors.empty() || tensors.size() == tied().size(), "one tensor for each that is tied");
  stand_in_ = tensors.empty() ? at::Tensor() : tensors.front();
}

at::Tensor Bert::empty_hidden(const Batch& batch, int layer) const {
  return empty_states(batch, layer, depth(), config_.hidden);
}

std::vector<at::Tensor> Bert::row_tables() const {
  if (reads_ == Reads::kMasked || !embeddings_.word.is_cpu()) return {};
  return {embeddings_.word};
}

std::vector<tensor::RowUse> Bert::rows_used(const Batch& batch) const {
  if (row_tables().empty()) return {};
  return {{embeddings_.word, batch.at("input_ids").flatten()}};
}

Batch Bert::in_common_shape(Batch batch) const {
  const int64_t length = std::min(common_length(batch.at("input_ids").size(1)), config_.max_positions);
  return padded(std::move(batch), length, config_.pad_token);
}

Noise Bert::noise(int64_t site, double rate, const Drawn& drawn) const {
  if (!mode_.training || rate <= 0) return {};
  Noise made = make_noise(mix_key(mode_.noise_key, site), rate);
  made.site = site;
  made.rows = drawn.rows;
  made.device = drawn.device;
  return made;
}

Bert::Drawn Bert::all_rows(const Batch& batch) const {
  return {rows_, device_rows(batch, batch.at("input_ids").size(1))};
}

Bert::Drawn Bert::first_rows_of(const Batch& batch) const {
  return {rows_ ? rows_of(batch.ids, 1) : NoiseRows(), device_rows(batch, 1)};
}

bool Bert::packs(LayerRange range) const {
  if (plain_ || padded_) return false;
  if (range.has(0) && !fast::can_run({embeddings_.word, embeddings_.position, embeddings_.type,
                                      embeddings_.norm.weight, embeddings_.norm.bias}))
    return false;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const AttentionParams& a = layers_[i].attention;
    const FeedForwardParams& f = layers_[i].feed_forward;
    if (range.has(static_cast<int>(i) + 1) &&
        !fast::can_run({a.query.weight, a.query.bias, a.key.weight, a.key.bias, a.value.weight, a.value.bias,
                        a.output.weight, a.output.bias, a.norm.weight, a.norm.bias, f.up.weight, f.up.bias,
                        f.down.weight, f.down.bias, f.norm.weight, f.norm.bias}))
      return false;
  }
  return true;
}

at::Tensor Bert::embed_batch(const Batch& batch) const {
  const at::Tensor& ids_BL = batch.at("input_ids");
  const auto types = batch.fields.find("token_type_ids");
  const at::Tensor types_BL = types == batch.fields.end() ? at::zeros_like(ids_BL) : types->second;
  check_tokens(ids_BL, config_.max_positions, config_.vocab_size, "use the vocab.txt of this model");
  if (ids_BL.is_cpu() && ids_BL.numel() > 0) {
    if (types_BL.min().item<int64_t>() < 0 || types_BL.max().item<int64_t>() >= config_.type_vocab) {
      throw DataError("a batch has a token type outside the model's {}", config_.type_vocab);
    }
  }
  const auto run = plain_ ? plain::embed : embed;
  return run(embeddings_, ids_BL, types_BL,
             {.pad_token = config_.pad_token,
              .eps = config_.layer_norm_eps,
              .noise = noise(0, config_.hidden_dropout, all_rows(batch)),
              .packed = packed_});
}

at::Tensor Bert::encode(int64_t layer, const at::Tensor& x, const at::Tensor& mask_BL,
                        const Batch& batch) const {
  const Layer& params = layers_[static_cast<size_t>(layer)];
  const int64_t site = 1 + layer * kSitesPerLayer;
  const bool partial = layer + 1 == config_.layers && last_is_partial();
  const bool first_only = partial && reads_ == Reads::kFirst;
  const bool masked_only = partial && reads_ == Reads::kMasked;
  // The noise of a position is the same when others are left out.
  const Drawn asked = first_only ? first_rows_of(batch) : all_rows(batch);
  const at::Tensor masked = !masked_only ? at::Tensor()
                            : packed_    ? packed_rows(batch.at("masked"), *packed_)
                                         : batch.at("masked");
  const Drawn fed = masked_only ? Drawn{chosen_rows(rows_, masked),
                                        device_rows(batch, batch.at("input_ids").size(1), masked)}
                                : asked;
  AttentionOptions attention;
  attention.heads = config_.heads;
  attention.eps = config_.layer_norm_eps;
  attention.first_only = first_only;
  attention.probs_noise = noise(site + kProbs, config_.attention_dropout, asked);
  attention.output_noise = noise(site + kAttentionOutput, config_.hidden_dropout, asked);
  attention.packed = packed_;
  FeedForwardOptions feed;
  feed.activation = config_.activation;
  feed.eps = config_.layer_norm_eps;
  feed.inner_noise = noise(site + kInner, config_.inner_dropout, fed);
  feed.output_noise = noise(site + kFeedForwardOutput, config_.hidden_dropout, fed);
  at::Tensor attended = (plain_ ? plain::attend : attend)(params.attention, x, mask_BL, attention);
  if (masked_only) attended = attended.flatten(0, 1).index_select(0, masked).unsqueeze(0);
  return (plain_ ? plain::feed_forward : feed_forward)(params.feed_forward, attended, feed);
}

at::Tensor Bert::masked_rows(const at::Tensor& hidden_BLD, const Batch& batch) {
  return hidden_BLD.flatten(0, 1).index_select(0, batch.at("masked")).unsqueeze(0);
}

Noise Bert::head_noise(double rate, const Batch& batch) const {
  return noise(1 + config_.layers * kSitesPerLayer, rate, first_rows_of(batch));
}

at::Tensor Bert::forward(at::Tensor hidden, const Batch& batch, LayerRange range) {
  check(0 <= range.first && range.first <= range.last && range.last <= depth(),
        "a range of layers the model lacks");
  const at::Tensor& ids_BL = batch.at("input_ids");
  packed_ = packs(range) ? packing_of(batch) : nullptr;
  rows_ = NoiseRows();
  if (mode_.training && ids_BL.is_cpu()) rows_ = packed_ ? rows_of(batch, *packed_) : rows_of(batch, ids_BL);
  const at::Tensor mask_BL =
      packed_ ? at::Tensor() : additive_mask(batch, ids_BL.options().dtype(embeddings_.word.dtype()));
  // Padded is what enters and leaves, so that others need not know.
  const int head_at = depth() - 1, whole_before = last_is_partial() ? head_at - 1 : head_at;
  if (packed_ && 0 < range.first && range.first < head_at) hidden = pack(hidden, *packed_);
  for (int i = range.first; i < range.last; ++i) {
    if (mode_.training) seed_device_noise(ids_BL.device(), mix_key(mode_.noise_key, i), batch.ids);
    if (i == 0) {
      hidden = embed_batch(batch);
    } else if (i < head_at) {
      hidden = encode(i - 1, hidden, mask_BL, batch);
    } else {
      hidden = head(hidden, batch);
    }
    const bool leaves = i + 1 == range.last || i + 1 == head_at;
    if (packed_ && leaves && i < whole_before) hidden = unpack(hidden, *packed_);
  }
  return hidden;
}

void Bert::set_dropout(double rate, double inner) {
  config_.set_dropout(rate);
  config_.inner_dropout = inner;
  config_.validate();
}

}  // namespace syncopate::nn
