#pragma once

#include <memory>
#include <string>
#include <vector>

#include "syncopate/nn/bert/bert.h"

namespace syncopate::nn {

/// A class for a text, from the pooled first position (BertForSequenceClassification). Output: logits [B,
/// labels].
class BertClassifier final : public Bert {
 public:
  explicit BertClassifier(const BertConfig& config);

  void name_labels(std::vector<std::string> names);  ///< as many as there are labels
  /// The pooled first token [B, D] of the last hidden state.
  at::Tensor pool(const at::Tensor& hidden_BLD) const;

  Loss loss(const at::Tensor& logits, const Batch& batch) const override;
  int64_t count(const Batch& batch) const override;
  std::vector<tensor::NamedTensor> head_parameters() const override;
  const char* architecture() const override { return "BertForSequenceClassification"; }

 private:
  at::Tensor head(const at::Tensor& hidden, const Batch& batch) const override;
  LinearParams pooler_, classifier_;
};

/// The words behind masked positions (BertForMaskedLM), the decoder tied to the word embeddings. A batch
/// holds "masked" [M], positions counted through the whole batch (example * length + position), and for the
/// loss "labels" [M]. Only these positions go through the last feed-forward block and the decoder. Output:
/// logits [M, vocabulary].
class BertMaskedLm final : public Bert {
 public:
  explicit BertMaskedLm(const BertConfig& config);

  Loss loss(const at::Tensor& logits, const Batch& batch) const override;
  int64_t count(const Batch& batch) const override;
  std::vector<tensor::NamedTensor> head_parameters() const override;
  const char* architecture() const override { return "BertForMaskedLM"; }

 private:
  at::Tensor head(const at::Tensor& hidden, const Batch& batch) const override;
  LinearParams transform_;
  NormParams norm_;
  at::Tensor bias_V_;
};

/// Where an answer starts and ends (BertForQuestionAnswering). A batch holds "starts" and "ends" [B] for the
/// loss, the mean of both cross entropies over a text's own positions (padding is none). Output: logits [B,
/// L, 2].
class BertQuestionAnswering final : public Bert {
 public:
  explicit BertQuestionAnswering(const BertConfig& config);

  Loss loss(const at::Tensor& logits, const Batch& batch) const override;
  int64_t count(const Batch& batch) const override;
  std::vector<tensor::NamedTensor> head_parameters() const override;
  const char* architecture() const override { return "BertForQuestionAnswering"; }

 private:
  at::Tensor head(const at::Tensor& hidden, const Batch& batch) const override;
  LinearParams outputs_;
};

/// A model with fresh parameters that depend on `seed` alone.
template <typename Head = BertClassifier>
std::unique_ptr<Head> make_bert(const BertConfig& config, uint64_t seed) {
  auto model = std::make_unique<Head>(config);
  model->initialize(seed);
  return model;
}

}  // namespace syncopate::nn
