#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/nn/transformer_config.h"

namespace syncopate::nn {

/// The shape of a GPT-2 and its regularisation. The defaults are those of gpt2.
struct GptConfig : TransformerConfig {
  GptConfig()
      : TransformerConfig{.vocab_size = 50257,
                          .max_positions = 1024,
                          .activation = Activation::kGeluTanh,
                          .layer_norm_eps = 1e-5} {}

  int64_t bos_token = 50256;  ///< -1 for none
  int64_t eos_token = 50256;  ///< -1 for none
  double embedding_dropout = 0.1;
  double attention_dropout = 0.1;
  double residual_dropout = 0.1;

  void set_dropout(double rate);  ///< all three
  void validate() const;          ///< throws ConfigError

  friend bool operator==(const GptConfig&, const GptConfig&) = default;
};

/// "gpt-tiny", "gpt-mini", "gpt2", "gpt2-xl".
std::vector<std::string> gpt_preset_names();
bool is_gpt_preset(std::string_view name);
GptConfig gpt_preset(std::string_view name);  ///< throws ConfigError with a suggestion

/// Hugging Face's config.json. Unknown keys are ignored; a key of the wrong kind, an activation or a variant
/// of the attention that we do not have, or another model type is a DataError that names the file.
GptConfig read_gpt_config(const std::filesystem::path& path);
GptConfig parse_gpt_config(const nlohmann::json& json, const std::string& where);
nlohmann::json gpt_config_to_json(const GptConfig& config);

}  // namespace syncopate::nn
