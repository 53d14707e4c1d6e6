#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "syncopate/nn/bert_config.h"
#include "syncopate/nn/layers.h"
#include "syncopate/nn/model.h"

namespace syncopate::nn {

/// BERT with a classification head on the pooled first token, under Hugging Face's names
/// (BertForSequenceClassification). Layer 0 is the embeddings, layers 1..n the encoder, layer n+1 pooler and
/// head.
///
/// The head reads only the first position of each example, so the last encoder layer computes only that one
/// ([B, 1, D] instead of [B, L, D]): loss and gradients are the same. `set_whole_last_layer(true)` computes
/// all.
class BertClassifier final : public Model {
 public:
  /// Parameters are not yet set: see make_bert and load_bert. Throws ConfigError.
  explicit BertClassifier(const BertConfig& config);

  const BertConfig& config() const { return config_; }
  void set_dropout(double rate, double inner);       ///< at BERT's places; after the activation
  void name_labels(std::vector<std::string> names);  ///< as many as there are labels
  void set_whole_last_layer(bool whole) { whole_last_layer_ = whole; }
  /// Uses ATen's plain operations instead of our kernels: slower, for comparison.
  void set_plain(bool plain) { plain_ = plain; }

  std::vector<tensor::NamedTensor> parameters() const override;
  void set_mode(Mode mode) override { mode_ = mode; }
  int depth() const override { return static_cast<int>(config_.layers) + 2; }
  using Model::forward;
  /// Logits [B, labels] after the last layer. Throws DataError for tokens or lengths the model has no
  /// embedding for.
  at::Tensor forward(at::Tensor hidden_BLD, const Batch& batch, LayerRange layers) override;
  /// Cross entropy, summed over the examples.
  Loss loss(const at::Tensor& logits, const Batch& batch) const override;
  std::vector<at::Tensor> row_tables() const override { return {embeddings_.word}; }
  std::vector<tensor::RowUse> rows_used(const Batch& batch) const override;

  /// The pooled first token [B, D] of the last hidden state.
  at::Tensor pool(const at::Tensor& hidden_BLD) const;

  /// Fresh values that depend on `seed` alone: normal(0, initializer_range), biases 0, norms 1.
  void initialize(uint64_t seed);
  void initialize_head(uint64_t seed);    ///< the classifier alone
  void initialize_pooler(uint64_t seed);  ///< the pooler alone

 private:
  struct Layer {
    AttentionParams attention;
    FeedForwardParams feed_forward;
  };

  Noise noise(int64_t site, double rate, int64_t row_step = 1) const;
  at::Tensor embed_batch(const Batch& batch) const;
  at::Tensor encode(int64_t layer, const at::Tensor& x_BLD, const at::Tensor& mask_BL, int64_t length) const;
  at::Tensor classify(const at::Tensor& hidden_BLD) const;

  BertConfig config_;
  EmbeddingParams embeddings_;
  std::vector<Layer> layers_;
  LinearParams pooler_, classifier_;
  Mode mode_;
  bool whole_last_layer_ = false;
  bool plain_ = false;
};

/// A BERT with fresh parameters that depend on `seed` alone.
std::unique_ptr<BertClassifier> make_bert(const BertConfig& config, uint64_t seed);

}  // namespace syncopate::nn
