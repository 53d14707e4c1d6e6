#include "syncopate/nn/bert/bert_config.h"

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/nn/class_names.h"
#include "syncopate/nn/config_reader.h"
#include "syncopate/nn/presets.h"

namespace syncopate::nn {
namespace {

using nlohmann::json;

constexpr TransformerKeys kKeys = {.hidden = "hidden_size",
                                   .layers = "num_hidden_layers",
                                   .heads = "num_attention_heads",
                                   .ffn = "intermediate_size",
                                   .max_positions = "max_position_embeddings",
                                   .activation = "hidden_act",
                                   .layer_norm_eps = "layer_norm_eps"};

const Presets<BertConfig>& presets() {
  static const Presets<BertConfig> all = {
      {"bert-tiny", with_size<BertConfig>(2, 128, 2)},     {"bert-mini", with_size<BertConfig>(4, 256, 4)},
      {"bert-small", with_size<BertConfig>(4, 512, 8)},    {"bert-base", with_size<BertConfig>(12, 768, 12)},
      {"bert-large", with_size<BertConfig>(24, 1024, 16)},
  };
  return all;
}

/// What transformers calls classes without names.
std::vector<std::string> default_names(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(fmt::format("LABEL_{}", i));
  return names;
}

}  // namespace

void BertConfig::set_dropout(double rate) {
  hidden_dropout = rate;
  attention_dropout = rate;
  classifier_dropout.reset();
}

void BertConfig::validate() const {
  check_transformer(*this, kKeys);
  check_size("type_vocab_size", type_vocab);
  check_size("number of labels", num_labels);
  check_rate("hidden_dropout_prob", hidden_dropout);
  check_rate("attention_probs_dropout_prob", attention_dropout);
  check_rate("inner dropout", inner_dropout);
  check_rate("classifier_dropout", classifier_dropout.value_or(0));
  check_class_names(num_labels, labels);
}

std::vector<std::string> preset_names() { return presets().names(); }
bool is_preset(std::string_view name) { return presets().contains(name); }
BertConfig preset(std::string_view name) { return presets().at(name); }

BertConfig parse_bert_config(const json& object, const std::string& where) {
  const ConfigReader reader(object, where);
  reader.expect_type("bert", "bert");
  const std::string positions = reader.text("position_embedding_type", "absolute");
  if (positions != "absolute") {
    throw DataError("{}: position embeddings of type \"{}\" are not supported; only \"absolute\" is", where,
                    positions);
  }
  BertConfig config;
  read_transformer(reader, kKeys, "BERT", config);
  reader.integer("type_vocab_size", config.type_vocab);
  reader.integer("pad_token_id", config.pad_token);
  reader.number("hidden_dropout_prob", config.hidden_dropout);
  reader.number("attention_probs_dropout_prob", config.attention_dropout);
  reader.number("inner_dropout_prob", config.inner_dropout);
  if (reader.find("classifier_dropout") != nullptr) {
    reader.number("classifier_dropout", config.classifier_dropout.emplace());
  }
  read_class_names(reader, config.num_labels, config.labels);
  if (config.labels == default_names(static_cast<int64_t>(config.labels.size()))) config.labels.clear();
  return validated(config, where);
}

BertConfig read_bert_config(const std::filesystem::path& path) {
  return parse_bert_config(read_config_file(path), path.string());
}

json bert_config_to_json(const BertConfig& config, const std::string& architecture) {
  json object = transformer_to_json(config, kKeys);
  object["architectures"] = json::array({architecture});
  object["model_type"] = "bert";
  object["intermediate_size"] = config.ffn;
  object["type_vocab_size"] = config.type_vocab;
  object["pad_token_id"] = config.pad_token;
  object["position_embedding_type"] = "absolute";
  object["hidden_dropout_prob"] = config.hidden_dropout;
  object["attention_probs_dropout_prob"] = config.attention_dropout;
  object["classifier_dropout"] = nullptr;
  if (config.classifier_dropout) object["classifier_dropout"] = *config.classifier_dropout;
  if (config.inner_dropout > 0) object["inner_dropout_prob"] = config.inner_dropout;  // a key of ours
  if (architecture != "BertForSequenceClassification") return object;
  // transformers takes the number of labels from id2label alone.
  write_class_names(config.labels.empty() ? default_names(config.num_labels) : config.labels, object);
  return object;
}

}  // namespace syncopate::nn
