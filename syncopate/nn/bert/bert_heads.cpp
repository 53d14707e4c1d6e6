#include "syncopate/nn/bert/bert_heads.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/nn/layers/cross_entropy.h"
#include "syncopate/nn/layers/initialize.h"
#include "syncopate/nn/layers/product.h"

namespace syncopate::nn {
namespace {

/// Cross entropy of a place among a text's own positions. Padding is no choice: how much there is depends on
/// the batch that an example happens to be in, and so on the number of workers.
Loss place_loss(const at::Tensor& logits_BL, const at::Tensor& padding_BL, const at::Tensor& places_B,
                double smoothing) {
  const at::Tensor among_BL = logits_BL.to(at::kFloat).masked_fill(padding_BL, -INFINITY);
  Loss loss = cross_entropy(among_BL, places_B);
  if (smoothing > 0) {
    const at::Tensor logs_BL = at::log_softmax(among_BL, -1).masked_fill(padding_BL, 0);
    const at::Tensor spread = -(logs_BL.sum(-1) / padding_BL.logical_not().sum(-1)).sum();
    loss.sum = (1 - smoothing) * loss.sum + smoothing * spread;
  }
  return loss;
}

}  // namespace

BertClassifier::BertClassifier(const BertConfig& config)
    : Bert(config, Reads::kFirst),
      pooler_(linear_params(config.hidden, config.hidden)),
      classifier_(linear_params(config.num_labels, config.hidden)) {}

std::vector<tensor::NamedTensor> BertClassifier::head_parameters() const {
  return {{"bert.pooler.dense.weight", pooler_.weight},
          {"bert.pooler.dense.bias", pooler_.bias},
          {"classifier.weight", classifier_.weight},
          {"classifier.bias", classifier_.bias}};
}

at::Tensor BertClassifier::pool(const at::Tensor& hidden_BLD) const {
  return at::tanh(at::linear(hidden_BLD.select(1, 0), pooler_.weight, pooler_.bias));
}

at::Tensor BertClassifier::head(const at::Tensor& hidden_BLD, const Batch& batch) const {
  const Noise noise = head_noise(config().classifier_dropout.value_or(config().hidden_dropout), batch);
  return at::linear(apply_noise(pool(hidden_BLD), noise), classifier_.weight, classifier_.bias);
}

Loss BertClassifier::loss(const at::Tensor& logits, const Batch& batch) const {
  return cross_entropy(logits, batch.at("labels"), smoothing());
}

int64_t BertClassifier::count(const Batch& batch) const { return labels_asked(batch.at("labels")); }

void BertClassifier::name_labels(std::vector<std::string> names) {
  check(static_cast<int64_t>(names.size()) == config().num_labels, "one name per label");
  settings().labels = std::move(names);
}

BertMaskedLm::BertMaskedLm(const BertConfig& config)
    : Bert(config, Reads::kMasked),
      transform_(linear_params(config.hidden, config.hidden)),
      norm_(norm_params(config.hidden)),
      bias_V_(parameter({config.vocab_size})) {}

std::vector<tensor::NamedTensor> BertMaskedLm::head_parameters() const {
  return {{"cls.predictions.transform.dense.weight", transform_.weight},
          {"cls.predictions.transform.dense.bias", transform_.bias},
          {"cls.predictions.transform.LayerNorm.weight", norm_.weight},
          {"cls.predictions.transform.LayerNorm.bias", norm_.bias},
          {"cls.predictions.bias", bias_V_}};
}

at::Tensor BertMaskedLm::head(const at::Tensor& hidden, const Batch& batch) const {
  const at::Tensor rows_MD = (whole_last_layer() ? masked_rows(hidden, batch) : hidden).squeeze(0);
  const at::Tensor active_MD =
      at::gelu(project(rows_MD, transform_.weight, transform_.bias), gelu_kind(config().activation));
  const at::Tensor normed_MD =
      at::layer_norm(active_MD, {config().hidden}, norm_.weight, norm_.bias, config().layer_norm_eps);
  return project(normed_MD, word_table(), bias_V_);
}

Loss BertMaskedLm::loss(const at::Tensor& logits, const Batch& batch) const {
  return cross_entropy(logits, batch.at("labels"), smoothing());
}

int64_t BertMaskedLm::count(const Batch& batch) const { return labels_asked(batch.at("labels")); }

BertQuestionAnswering::BertQuestionAnswering(const BertConfig& config)
    : Bert(config, Reads::kAll), outputs_(linear_params(2, config.hidden)) {}

std::vector<tensor::NamedTensor> BertQuestionAnswering::head_parameters() const {
  return {{"qa_outputs.weight", outputs_.weight}, {"qa_outputs.bias", outputs_.bias}};
}

at::Tensor BertQuestionAnswering::head(const at::Tensor& hidden_BLD, const Batch&) const {
  return at::linear(hidden_BLD, outputs_.weight, outputs_.bias);
}

Loss BertQuestionAnswering::loss(const at::Tensor& logits, const Batch& batch) const {
  const at::Tensor padding_BL = batch.at("attention_mask").eq(0);
  const Loss start = place_loss(logits.select(2, 0), padding_BL, batch.at("starts"), smoothing());
  const Loss end = place_loss(logits.select(2, 1), padding_BL, batch.at("ends"), smoothing());
  return {(start.sum + end.sum) / 2, start.count};
}

int64_t BertQuestionAnswering::count(const Batch& batch) const { return labels_asked(batch.at("starts")); }

}  // namespace syncopate::nn
