#include "syncopate/nn/transformer_config.h"

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/nn/config_reader.h"

namespace syncopate::nn {

using nlohmann::json;

void check_transformer(const TransformerConfig& config, const TransformerKeys& keys) {
  check_size("vocab_size", config.vocab_size);
  check_size(keys.hidden, config.hidden);
  check_size(keys.layers, config.layers);
  check_size(keys.heads, config.heads);
  check_size(keys.ffn, config.ffn);
  check_size(keys.max_positions, config.max_positions);
  if (config.hidden % config.heads != 0) {
    throw ConfigError("the model's {} {} must be a multiple of its {} attention heads", keys.hidden,
                      config.hidden, config.heads);
  }
  if (!(config.layer_norm_eps > 0)) {
    throw ConfigError("the model's {} must be above 0, got {}", keys.layer_norm_eps, config.layer_norm_eps);
  }
  if (!(config.initializer_range >= 0)) {
    throw ConfigError("the model's initializer_range must be 0 or more, got {}", config.initializer_range);
  }
}

void read_transformer(const ConfigReader& reader, const TransformerKeys& keys, const char* model,
                      TransformerConfig& config) {
  reader.require({keys.hidden, keys.layers, keys.heads, "vocab_size"}, model);
  reader.integer("vocab_size", config.vocab_size);
  reader.integer(keys.hidden, config.hidden);
  reader.integer(keys.layers, config.layers);
  reader.integer(keys.heads, config.heads);
  config.ffn = 4 * config.hidden;
  reader.integer(keys.ffn, config.ffn);
  reader.integer(keys.max_positions, config.max_positions);
  reader.number(keys.layer_norm_eps, config.layer_norm_eps);
  reader.number("initializer_range", config.initializer_range);
  config.activation = reader.activation(keys.activation, config.activation);
}

json transformer_to_json(const TransformerConfig& config, const TransformerKeys& keys) {
  return {
      {"vocab_size", config.vocab_size},
      {keys.hidden, config.hidden},
      {keys.layers, config.layers},
      {keys.heads, config.heads},
      {keys.max_positions, config.max_positions},
      {keys.activation, activation_name(config.activation)},
      {keys.layer_norm_eps, config.layer_norm_eps},
      {"initializer_range", config.initializer_range},
      {"torch_dtype", "float32"},
  };
}

}  // namespace syncopate::nn
