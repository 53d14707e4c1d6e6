#include "syncopate/nn/bert_heads.h"

#include <ATen/ATen.h>

#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/nn/cross_entropy.h"
#include "syncopate/nn/initialize.h"

namespace syncopate::nn {
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

at::Tensor BertClassifier::head(const at::Tensor& hidden_BLD, const Batch&) const {
  const Noise noise = head_noise(config().classifier_dropout.value_or(config().hidden_dropout));
  return at::linear(apply_noise(pool(hidden_BLD), noise), classifier_.weight, classifier_.bias);
}

Loss BertClassifier::loss(const at::Tensor& logits, const Batch& batch) const {
  return cross_entropy(logits, batch.at("labels"), smoothing());
}

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
  const at::Tensor active_MD = at::gelu(at::linear(rows_MD, transform_.weight, transform_.bias),
                                        config().activation == Activation::kGelu ? "none" : "tanh");
  const at::Tensor normed_MD =
      at::layer_norm(active_MD, {config().hidden}, norm_.weight, norm_.bias, config().layer_norm_eps);
  return at::linear(normed_MD, word_table(), bias_V_);
}

Loss BertMaskedLm::loss(const at::Tensor& logits, const Batch& batch) const {
  return cross_entropy(logits, batch.at("labels"), smoothing());
}

BertQuestionAnswering::BertQuestionAnswering(const BertConfig& config)
    : Bert(config, Reads::kAll), outputs_(linear_params(2, config.hidden)) {}

std::vector<tensor::NamedTensor> BertQuestionAnswering::head_parameters() const {
  return {{"qa_outputs.weight", outputs_.weight}, {"qa_outputs.bias", outputs_.bias}};
}

at::Tensor BertQuestionAnswering::head(const at::Tensor& hidden_BLD, const Batch&) const {
  return at::linear(hidden_BLD, outputs_.weight, outputs_.bias);
}

Loss BertQuestionAnswering::loss(const at::Tensor& logits, const Batch& batch) const {
  const Loss start = cross_entropy(logits.select(2, 0), batch.at("starts"), smoothing());
  const Loss end = cross_entropy(logits.select(2, 1), batch.at("ends"), smoothing());
  return {(start.sum + end.sum) / 2, start.count};
}

}  // namespace syncopate::nn
