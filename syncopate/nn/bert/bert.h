#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/nn/bert/bert_config.h"
#include "syncopate/nn/layers/layers.h"
#include "syncopate/nn/model.h"

namespace syncopate::nn {

/// BERT's embeddings and encoder under Hugging Face's names; a subclass is a head on top (bert_heads.h).
/// Layer 0 is the embeddings, layers 1..n the encoder, layer n+1 the head.
class Bert : public Model {
 public:
  const BertConfig& config() const { return config_; }
  void set_dropout(double rate, double inner);  ///< at BERT's places; after the activation
  void set_label_smoothing(double share) { smoothing_ = share; }
  /// Computes all positions of the last layer, also those that the head does not read: slower, for
  /// comparison. Loss and gradients are the same.
  void set_whole_last_layer(bool whole) { whole_last_layer_ = whole; }
  /// Uses ATen's plain operations instead of our kernels: slower, for comparison.
  void set_plain(bool plain) { plain_ = plain; }
  /// Computes on padding too, which our kernels leave out: slower, for comparison.
  void set_padded(bool padded) { padded_ = padded; }

  using Model::forward;
  using Model::parameters;
  std::vector<tensor::NamedTensor> parameters(LayerRange layers) const override;
  std::vector<tensor::NamedTensor> tied() const override;  ///< the word embeddings, where a decoder is
  void stand_in_for_tied(std::vector<at::Tensor> tensors) override;
  void set_mode(Mode mode) override { mode_ = mode; }
  int depth() const override { return static_cast<int>(config_.layers) + 2; }
  bool own_products() const override { return !plain_; }
  at::Tensor empty_hidden(const Batch& batch, int layer) const override;  ///< [B, L, D]
  /// The word embeddings, unless a decoder is tied to them or they are on a device where rows are not worth
  /// the bookkeeping.
  std::vector<at::Tensor> row_tables() const override;
  std::vector<tensor::RowUse> rows_used(const Batch& batch) const override;
  Batch in_common_shape(Batch batch) const override;
  /// Throws DataError for tokens or lengths the model has no embedding for.
  at::Tensor forward(at::Tensor hidden_BLD, const Batch& batch, LayerRange layers) override;

  /// Fresh values that depend on `seed` alone: normal(0, initializer_range), biases 0, norms 1.
  void initialize(uint64_t seed);
  void initialize_head(uint64_t seed);  ///< the head alone

  /// The parameters that are the head's, named as in `parameters`; the last ones there.
  virtual std::vector<tensor::NamedTensor> head_parameters() const = 0;
  /// transformers' class of this model.
  virtual const char* architecture() const = 0;

 protected:
  /// Which positions of the last layer the head reads.
  enum class Reads { kFirst, kMasked, kAll };

  Bert(const BertConfig& config, Reads reads);  ///< parameters not yet set; throws ConfigError
  virtual at::Tensor head(const at::Tensor& hidden, const Batch& batch) const = 0;

  /// As a decoder reads it.
  const at::Tensor& word_table() const { return stand_in_.defined() ? stand_in_ : embeddings_.word; }
  Noise head_noise(double rate, const Batch& batch) const;  ///< of the first positions
  double smoothing() const { return mode_.training ? smoothing_ : 0; }
  BertConfig& settings() { return config_; }
  bool whole_last_layer() const { return whole_last_layer_; }
  /// The rows of a whole last layer where words are masked, [1, M, D].
  static at::Tensor masked_rows(const at::Tensor& hidden_BLD, const Batch& batch);

 private:
  struct Layer {
    AttentionParams attention;
    FeedForwardParams feed_forward;
  };

  /// From which rows of a noise a tensor's are: on the host, or in a GPU's memory.
  struct Drawn {
    NoiseRows rows;
    std::shared_ptr<const DeviceRows> device;
  };
  Noise noise(int64_t site, double rate, const Drawn& drawn) const;
  Drawn all_rows(const Batch& batch) const;
  Drawn first_rows_of(const Batch& batch) const;  ///< of the first positions
  bool packs(LayerRange layers) const;            ///< our kernels take their parameters
  bool last_is_partial() const { return !whole_last_layer_ && reads_ != Reads::kAll; }
  at::Tensor embed_batch(const Batch& batch) const;
  at::Tensor encode(int64_t layer, const at::Tensor& x, const at::Tensor& mask_BL, const Batch& batch) const;

  BertConfig config_;
  Reads reads_;
  EmbeddingParams embeddings_;
  at::Tensor stand_in_;  ///< for the word embeddings; undefined: none
  std::vector<Layer> layers_;
  Mode mode_;
  Packed packed_;   ///< the batch at hand; null: its hidden states are padded
  NoiseRows rows_;  ///< of its hidden states
  double smoothing_ = 0;
  bool whole_last_layer_ = false;
  bool plain_ = false;
  bool padded_ = false;
};

}  // namespace syncopate::nn
