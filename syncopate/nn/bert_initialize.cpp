#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "syncopate/base/rng.h"
#include "syncopate/nn/bert.h"

namespace syncopate::nn {
namespace {

constexpr int64_t kChunk = 4096;  // each draws from a stream of its own, so that threads do not matter

void fill_normal(const at::Tensor& tensor, double deviation, uint64_t key) {
  const at::NoGradGuard no_grad;
  at::Tensor values = at::empty(tensor.sizes(), at::kFloat);
  float* out = values.data_ptr<float>();
  const int64_t size = values.numel();
  at::parallel_for(0, (size + kChunk - 1) / kChunk, 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      Rng rng(mix_key(key, chunk));
      const int64_t end = std::min(size, (chunk + 1) * kChunk);
      for (int64_t i = chunk * kChunk; i < end; i += 2) {
        const double radius = deviation * std::sqrt(-2.0 * std::log(1.0 - rng.uniform()));
        const double angle = 2.0 * std::numbers::pi * rng.uniform();
        out[i] = static_cast<float>(radius * std::cos(angle));
        if (i + 1 < end) out[i + 1] = static_cast<float>(radius * std::sin(angle));
      }
    }
  });
  tensor.detach().copy_(values);
}

}  // namespace

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
