#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "syncopate/nn/activation.h"

namespace syncopate::nn {

class ConfigReader;

/// What the configurations of all transformers hold. The defaults are those of bert-base and gpt2.
struct TransformerConfig {
  int64_t vocab_size = 0;
  int64_t hidden = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t ffn = 3072;
  int64_t max_positions = 0;
  Activation activation = Activation::kGelu;
  double layer_norm_eps = 0;
  double initializer_range = 0.02;

  int64_t head_width() const { return hidden / heads; }

  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

/// What a family's config.json calls them, where families differ.
struct TransformerKeys {
  const char *hidden, *layers, *heads, *ffn, *max_positions, *activation, *layer_norm_eps;
};

/// Throws ConfigError, by the family's names.
void check_transformer(const TransformerConfig& config, const TransformerKeys& keys);

/// Reads what is there into `config`; `model` is the family's name for people. Throws DataError.
void read_transformer(const ConfigReader& reader, const TransformerKeys& keys, const char* model,
                      TransformerConfig& config);

/// All but the inner width, which one family always writes and the other only where it is not the usual one.
nlohmann::json transformer_to_json(const TransformerConfig& config, const TransformerKeys& keys);

/// A family's defaults in another size, with the usual inner width.
template <typename Config>
Config with_size(int64_t layers, int64_t hidden, int64_t heads) {
  Config config;
  config.layers = layers;
  config.hidden = hidden;
  config.heads = heads;
  config.ffn = 4 * hidden;
  return config;
}

}  // namespace syncopate::nn
