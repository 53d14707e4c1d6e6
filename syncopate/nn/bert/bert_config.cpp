#include "syncopate/nn/bert/bert_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/nn/config_reader.h"

namespace syncopate::nn {
namespace {

struct Preset {
  const char* name;
  int64_t layers, hidden, heads;
};

constexpr std::array<Preset, 5> kPresets = {{
    {"bert-tiny", 2, 128, 2},
    {"bert-mini", 4, 256, 4},
    {"bert-small", 4, 512, 8},
    {"bert-base", 12, 768, 12},
    {"bert-large", 24, 1024, 16},
}};

}  // namespace

void BertConfig::set_dropout(double rate) {
  hidden_dropout = rate;
  attention_dropout = rate;
  classifier_dropout.reset();
}

void BertConfig::validate() const {
  check_size("vocab_size", vocab_size);
  check_size("hidden_size", hidden);
  check_size("num_hidden_layers", layers);
  check_size("num_attention_heads", heads);
  check_size("intermediate_size", ffn);
  check_size("max_position_embeddings", max_positions);
  check_size("type_vocab_size", type_vocab);
  check_size("number of labels", num_labels);
  check_rate("hidden_dropout_prob", hidden_dropout);
  check_rate("attention_probs_dropout_prob", attention_dropout);
  check_rate("inner dropout", inner_dropout);
  check_rate("classifier_dropout", classifier_dropout.value_or(0));
  if (hidden % heads != 0) {
    throw ConfigError("the model's hidden_size {} must be a multiple of its {} attention heads", hidden,
                      heads);
  }
  if (!(layer_norm_eps > 0))
    throw ConfigError("the model's layer_norm_eps must be above 0, got {}", layer_norm_eps);
  if (!(initializer_range >= 0)) {
    throw ConfigError("the model's initializer_range must be 0 or more, got {}", initializer_range);
  }
  if (!labels.empty() && static_cast<int64_t>(labels.size()) != num_labels) {
    throw ConfigError("the model has {} labels but {} names for them", num_labels, labels.size());
  }
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& each : kPresets) names.emplace_back(each.name);
  return names;
}

bool is_preset(std::string_view name) {
  return std::any_of(kPresets.begin(), kPresets.end(), [&](const Preset& each) { return name == each.name; });
}

BertConfig preset(std::string_view name) {
  for (const Preset& each : kPresets) {
    if (name != each.name) continue;
    BertConfig config;
    config.layers = each.layers;
    config.hidden = each.hidden;
    config.heads = each.heads;
    config.ffn = 4 * each.hidden;
    return config;
  }
  throw ConfigError("there is no model preset \"{}\"{}", name, suggestion(name, preset_names()));
}

}  // namespace syncopate::nn
