#include <ATen/ATen.h>

#include "syncopate/base/rng.h"
#include "syncopate/nn/bert/bert.h"
#include "syncopate/nn/layers/initialize.h"

namespace syncopate::nn {
namespace {

void initialize_one(const tensor::NamedTensor& named, double deviation, uint64_t key) {
  if (named.name.ends_with("bias")) {
    named.tensor.detach().zero_();
  } else if (named.name.ends_with("LayerNorm.weight")) {
    named.tensor.detach().fill_(1);
  } else {
    fill_normal(named.tensor, deviation, key);
  }
}

}  // namespace

void Bert::initialize(uint64_t seed) {
  uint64_t number = 0;
  for (const auto& named : parameters())
    initialize_one(named, config_.initializer_range, mix_key(seed, number++));
  if (config_.pad_token >= 0 && config_.pad_token < config_.vocab_size) {
    embeddings_.word.detach().select(0, config_.pad_token).zero_();
  }
}

void Bert::initialize_head(uint64_t seed) {
  uint64_t number = 0;
  for (const auto& named : head_parameters())
    initialize_one(named, config_.initializer_range, mix_key(seed, 1, number++));
}

}  // namespace syncopate::nn
