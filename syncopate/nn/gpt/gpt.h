#pragma once

#include <memory>
#include <vector>

#include "syncopate/nn/gpt/gpt_config.h"
#include "syncopate/nn/layers/causal_block.h"
#include "syncopate/nn/layers/layers.h"
#include "syncopate/nn/model.h"

namespace syncopate::nn {

/// GPT-2 under Hugging Face's names (GPT2LMHeadModel): norms before each part, learned positions, and a head
/// that is the table of words. Its weights are [in, out], as there. Layer 0 is the embeddings, layers 1..n
/// the blocks, layer n+1 the last norm and the head.
///
/// Batches hold "input_ids" [B, L], "labels" [B, L] (often the same; kNoLabel asks for nothing) and, where
/// there is padding, "attention_mask" [B, L]. The loss compares what position l predicts with labels[l + 1].
class Gpt final : public Model {
 public:
  /// Parameters are not yet set: see make_gpt and load_gpt. Throws ConfigError.
  explicit Gpt(const GptConfig& config);

  const GptConfig& config() const { return config_; }
  void set_dropout(double rate);
  /// Uses ATen's plain operations instead of our kernels, and makes all logits even in training: slower, for
  /// comparison.
  void set_plain(bool plain) { plain_ = plain; }
  /// False lets every position see every other: for comparison.
  void set_causal(bool causal) { causal_ = causal; }

  using Model::forward;
  using Model::parameters;
  std::vector<tensor::NamedTensor> parameters(LayerRange layers) const override;
  std::vector<tensor::NamedTensor> tied() const override;  ///< the table of words
  void stand_in_for_tied(std::vector<at::Tensor> tensors) override;
  void set_mode(Mode mode) override { mode_ = mode; }
  int depth() const override { return static_cast<int>(config_.layers) + 2; }
  bool own_products() const override { return true; }
  at::Tensor empty_hidden(const Batch& batch, int layer) const override;  ///< [B, L, D]
  int64_t count(const Batch& batch) const override;
  /// Logits [B, L, V] after the last layer, except in training: there the last layer gives its hidden state
  /// [B, L, D] and the loss makes the logits, a few rows at a time. Throws DataError for tokens or lengths
  /// the model has no embedding for.
  at::Tensor forward(at::Tensor hidden_BLD, const Batch& batch, LayerRange layers) override;
  /// Cross entropy summed over the tokens predicted; their number is the count.
  Loss loss(const at::Tensor& output, const Batch& batch) const override;

  /// Fresh values that depend on `seed` alone: normal(0, initializer_range), projections back into the
  /// residual stream smaller by the root of their number, biases 0, norms 1.
  void initialize(uint64_t seed);

 private:
  using Block = CausalBlockParams;

  Noise noise(int64_t site, double rate, const Batch& batch) const;
  at::Tensor embed_batch(const Batch& batch) const;
  at::Tensor run_block(int64_t number, const at::Tensor& x_BLD, const at::Tensor& mask_BL,
                       const Batch& batch) const;
  const at::Tensor& head_table() const { return stand_in_.defined() ? stand_in_ : words_VD_; }
  bool loss_makes_logits() const { return mode_.training && !plain_; }

  GptConfig config_;
  at::Tensor words_VD_, positions_PD_;
  at::Tensor stand_in_;  ///< for the table of words as the head reads it; undefined: none
  std::vector<Block> blocks_;
  NormParams last_norm_;
  Mode mode_;
  NoiseRows rows_BL_;  ///< of the batch at hand
  bool plain_ = false;
  bool causal_ = true;
};

/// A GPT with fresh parameters that depend on `seed` alone.
std::unique_ptr<Gpt> make_gpt(const GptConfig& config, uint64_t seed);

}  // namespace syncopate::nn
