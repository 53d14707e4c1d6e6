#include "syncopate/nn/gpt/gpt_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/nn/config_reader.h"

namespace syncopate::nn {
namespace {

using nlohmann::json;

struct Preset {
  const char* name;
  int64_t layers, hidden, heads;
};

constexpr std::array<Preset, 4> kPresets = {{
    {"gpt-tiny", 2, 128, 2},
    {"gpt-mini", 4, 256, 4},
    {"gpt2", 12, 768, 12},
    {"gpt2-xl", 48, 1600, 25},
}};

void refuse_variants(const ConfigReader& reader, const std::string& where) {
  const auto refuse = [&](const char* key, bool ours) {
    if (reader.flag(key, ours) != ours) {
      throw DataError("{}: models with \"{}\": {} are not supported", where, key, ours ? "false" : "true");
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
  check_size("vocab_size", vocab_size);
  check_size("n_embd", hidden);
  check_size("n_layer", layers);
  check_size("n_head", heads);
  check_size("n_inner", ffn);
  check_size("n_positions", max_positions);
  check_rate("embd_pdrop", embedding_dropout);
  check_rate("attn_pdrop", attention_dropout);
  check_rate("resid_pdrop", residual_dropout);
  if (hidden % heads != 0) {
    throw ConfigError("the model's n_embd {} must be a multiple of its {} attention heads", hidden, heads);
  }
  if (!(layer_norm_eps > 0))
    throw ConfigError("the model's layer_norm_epsilon must be above 0, got {}", layer_norm_eps);
  if (!(initializer_range >= 0))
    throw ConfigError("the model's initializer_range must be 0 or more, got {}", initializer_range);
}

std::vector<std::string> gpt_preset_names() {
  std::vector<std::string> names;
  for (const Preset& each : kPresets) names.emplace_back(each.name);
  return names;
}

bool is_gpt_preset(std::string_view name) {
  return std::any_of(kPresets.begin(), kPresets.end(), [&](const Preset& each) { return each.name == name; });
}

GptConfig gpt_preset(std::string_view name) {
  for (const Preset& each : kPresets) {
    if (each.name != name) continue;
    GptConfig config;
    config.layers = each.layers;
    config.hidden = each.hidden;
    config.heads = each.heads;
    config.ffn = 4 * each.hidden;
    return config;
  }
  throw ConfigError("unknown model \"{}\"{}", name, suggestion(name, gpt_preset_names()));
}

GptConfig parse_gpt_config(const json& object, const std::string& where) {
  const ConfigReader reader(object, where);
  const std::string type = reader.text("model_type", "gpt2");
  if (type != "gpt2") throw DataError("{} describes a \"{}\" model, not \"gpt2\"", where, type);
  reader.require({"n_embd", "n_layer", "n_head", "vocab_size"}, "GPT-2");
  refuse_variants(reader, where);
  GptConfig config;
  reader.integer("vocab_size", config.vocab_size);
  reader.integer("n_embd", config.hidden);
  reader.integer("n_layer", config.layers);
  reader.integer("n_head", config.heads);
  config.ffn = 4 * config.hidden;
  reader.integer("n_inner", config.ffn);
  reader.integer("n_ctx", config.max_positions);  // its name in old files
  reader.integer("n_positions", config.max_positions);
  config.bos_token = config.eos_token = -1;
  reader.integer("bos_token_id", config.bos_token);
  reader.integer("eos_token_id", config.eos_token);
  reader.number("layer_norm_epsilon", config.layer_norm_eps);
  reader.number("initializer_range", config.initializer_range);
  reader.number("embd_pdrop", config.embedding_dropout);
  reader.number("attn_pdrop", config.attention_dropout);
  reader.number("resid_pdrop", config.residual_dropout);
  config.activation = reader.activation("activation_function", "gelu_new");
  return validated(config, where);
}

GptConfig read_gpt_config(const std::filesystem::path& path) {
  return parse_gpt_config(read_config_file(path), path.string());
}

json gpt_config_to_json(const GptConfig& config) {
  json object = {
      {"architectures", {"GPT2LMHeadModel"}},
      {"model_type", "gpt2"},
      {"vocab_size", config.vocab_size},
      {"n_embd", config.hidden},
      {"n_layer", config.layers},
      {"n_head", config.heads},
      {"n_inner", nullptr},
      {"n_positions", config.max_positions},
      {"n_ctx", config.max_positions},
      {"activation_function", config.activation == Activation::kGelu ? "gelu" : "gelu_new"},
      {"layer_norm_epsilon", config.layer_norm_eps},
      {"initializer_range", config.initializer_range},
      {"embd_pdrop", config.embedding_dropout},
      {"attn_pdrop", config.attention_dropout},
      {"resid_pdrop", config.residual_dropout},
      {"bos_token_id", nullptr},
      {"eos_token_id", nullptr},
      {"tie_word_embeddings", true},
      {"torch_dtype", "float32"},
  };
  if (config.ffn != 4 * config.hidden) object["n_inner"] = config.ffn;
  if (config.bos_token >= 0) object["bos_token_id"] = config.bos_token;
  if (config.eos_token >= 0) object["eos_token_id"] = config.eos_token;
  return object;
}

}  // namespace syncopate::nn
