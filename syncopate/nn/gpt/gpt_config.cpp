#include "syncopate/nn/gpt/gpt_config.h"

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/nn/config_reader.h"
#include "syncopate/nn/presets.h"

namespace syncopate::nn {
namespace {

using nlohmann::json;

constexpr TransformerKeys kKeys = {.hidden = "n_embd",
                                   .layers = "n_layer",
                                   .heads = "n_head",
                                   .ffn = "n_inner",
                                   .max_positions = "n_positions",
                                   .activation = "activation_function",
                                   .layer_norm_eps = "layer_norm_epsilon"};

const Presets<GptConfig>& presets() {
  static const Presets<GptConfig> all = {
      {"gpt-tiny", with_size<GptConfig>(2, 128, 2)},
      {"gpt-mini", with_size<GptConfig>(4, 256, 4)},
      {"gpt2", with_size<GptConfig>(12, 768, 12)},
      {"gpt2-xl", with_size<GptConfig>(48, 1600, 25)},
  };
  return all;
}

void refuse_variants(const ConfigReader& reader) {
  const auto refuse = [&](const char* key, bool ours) {
    if (reader.flag(key, ours) != ours) {
      throw DataError("{}: models with \"{}\": {} are not supported", reader.where(), key,
                      ours ? "false" : "true");
    }
  };
  refuse("scale_attn_by_inverse_layer_idx", false);
  refuse("scale_attn_weights", true);
  refuse("add_cross_attention", false);
  refuse("tie_word_embeddings", true);
  // "reorder_and_upcast_attn" only asks for what fp32 gives anyway.
}

}  // namespace

void GptConfig::set_dropout(double rate) { embedding_dropout = attention_dropout = residual_dropout = rate; }

void GptConfig::validate() const {
  check_transformer(*this, kKeys);
  check_rate("embd_pdrop", embedding_dropout);
  check_rate("attn_pdrop", attention_dropout);
  check_rate("resid_pdrop", residual_dropout);
}

std::vector<std::string> gpt_preset_names() { return presets().names(); }
bool is_gpt_preset(std::string_view name) { return presets().contains(name); }
GptConfig gpt_preset(std::string_view name) { return presets().at(name); }

GptConfig parse_gpt_config(const json& object, const std::string& where) {
  const ConfigReader reader(object, where);
  reader.expect_type("gpt2", "gpt2");
  GptConfig config;
  reader.integer("n_ctx", config.max_positions);  // its name in old files
  read_transformer(reader, kKeys, "GPT-2", config);
  refuse_variants(reader);
  config.bos_token = config.eos_token = -1;
  reader.integer("bos_token_id", config.bos_token);
  reader.integer("eos_token_id", config.eos_token);
  reader.number("embd_pdrop", config.embedding_dropout);
  reader.number("attn_pdrop", config.attention_dropout);
  reader.number("resid_pdrop", config.residual_dropout);
  return validated(config, where);
}

GptConfig read_gpt_config(const std::filesystem::path& path) {
  return parse_gpt_config(read_config_file(path), path.string());
}

json gpt_config_to_json(const GptConfig& config) {
  json object = transformer_to_json(config, kKeys);
  object["architectures"] = json::array({"GPT2LMHeadModel"});
  object["model_type"] = "gpt2";
  object["n_inner"] = nullptr;
  object["n_ctx"] = config.max_positions;
  object["embd_pdrop"] = config.embedding_dropout;
  object["attn_pdrop"] = config.attention_dropout;
  object["resid_pdrop"] = config.residual_dropout;
  object["bos_token_id"] = nullptr;
  object["eos_token_id"] = nullptr;
  object["tie_word_embeddings"] = true;
  if (config.ffn != 4 * config.hidden) object["n_inner"] = config.ffn;
  if (config.bos_token >= 0) object["bos_token_id"] = config.bos_token;
  if (config.eos_token >= 0) object["eos_token_id"] = config.eos_token;
  return object;
}

}  // namespace syncopate::nn
