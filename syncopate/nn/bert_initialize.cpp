#include <ATen/ATen.h>

#include "syncopate/base/rng.h"
#include "syncopate/nn/bert.h"
#include "syncopate/nn/initialize.h"

namespace syncopate::nn {
void BertClassifier::initialize(uint64_t seed) {
  uint64_t number = 0;
  for (const auto& [name, parameter] : parameters()) {
    const uint64_t key = mix_key(seed, number++);
    if (name.ends_with(".bias")) {
      parameter.detach().zero_();
    } else if (name.ends_with("LayerNorm.weight")) {
      parameter.detach().fill_(1);
    } else {
      fill_normal(parameter, config_.initializer_range, key);
    }
  }
  if (config_.pad_token >= 0 && config_.pad_token < config_.vocab_size) {
    embeddings_.word.detach().select(0, config_.pad_token).zero_();
  }
}

void BertClassifier::initialize_head(uint64_t seed) {
  fill_normal(classifier_.weight, config_.initializer_range, mix_key(seed, 1));
  classifier_.bias.detach().zero_();
}

void BertClassifier::initialize_pooler(uint64_t seed) {
  fill_normal(pooler_.weight, config_.initializer_range, mix_key(seed, 2));
  pooler_.bias.detach().zero_();
}

std::unique_ptr<BertClassifier> make_bert(const BertConfig& config, uint64_t seed) {
  auto model = std::make_unique<BertClassifier>(config);
  model->initialize(seed);
  return model;
}

}  // namespace syncopate::nn
