#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/nn/bert/bert_config.h"
#include "syncopate/nn/config_reader.h"

namespace syncopate::nn {
namespace {

using nlohmann::json;

std::string default_label(size_t number) { return fmt::format("LABEL_{}", number); }

void read_labels(const ConfigReader& reader, BertConfig& config) {
  reader.integer("num_labels", config.num_labels);
  if (reader.find("id2label") == nullptr) return;
  config.labels = reader.class_names();
  config.num_labels = static_cast<int64_t>(config.labels.size());
  // What is written for classes without names.
  bool nameless = true;
  for (size_t i = 0; i < config.labels.size(); ++i)
    nameless = nameless && config.labels[i] == default_label(i);
  if (nameless) config.labels.clear();
}

}  // namespace

BertConfig parse_bert_config(const json& object, const std::string& where) {
  const ConfigReader reader(object, where);
  const std::string type = reader.text("model_type", "bert");
  if (type != "bert") throw DataError("{} describes a \"{}\" model; only \"bert\" is supported", where, type);
  const std::string positions = reader.text("position_embedding_type", "absolute");
  if (positions != "absolute") {
    throw DataError("{}: position embeddings of type \"{}\" are not supported; only \"absolute\" is", where,
                    positions);
  }
  BertConfig config;
  reader.require({"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}, "BERT");
  reader.integer("vocab_size", config.vocab_size);
  reader.integer("hidden_size", config.hidden);
  reader.integer("num_hidden_layers", config.layers);
  reader.integer("num_attention_heads", config.heads);
  config.ffn = 4 * config.hidden;
  reader.integer("intermediate_size", config.ffn);
  reader.integer("max_position_embeddings", config.max_positions);
  reader.integer("type_vocab_size", config.type_vocab);
  reader.integer("pad_token_id", config.pad_token);
  reader.number("layer_norm_eps", config.layer_norm_eps);
  reader.number("initializer_range", config.initializer_range);
  reader.number("hidden_dropout_prob", config.hidden_dropout);
  reader.number("attention_probs_dropout_prob", config.attention_dropout);
  reader.number("inner_dropout_prob", config.inner_dropout);
  if (reader.find("classifier_dropout") != nullptr) {
    reader.number("classifier_dropout", config.classifier_dropout.emplace());
  }
  config.activation = reader.activation("hidden_act", "gelu");
  read_labels(reader, config);
  return validated(config, where);
}

BertConfig read_bert_config(const std::filesystem::path& path) {
  return parse_bert_config(read_config_file(path), path.string());
}

json bert_config_to_json(const BertConfig& config, const std::string& architecture) {
  json object = {
      {"architectures", {architecture}},
      {"model_type", "bert"},
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden},
      {"num_hidden_layers", config.layers},
      {"num_attention_heads", config.heads},
      {"intermediate_size", config.ffn},
      {"max_position_embeddings", config.max_positions},
      {"type_vocab_size", config.type_vocab},
      {"pad_token_id", config.pad_token},
      {"position_embedding_type", "absolute"},
      {"hidden_act", config.activation == Activation::kGelu ? "gelu" : "gelu_new"},
      {"layer_norm_eps", config.layer_norm_eps},
      {"initializer_range", config.initializer_range},
      {"hidden_dropout_prob", config.hidden_dropout},
      {"attention_probs_dropout_prob", config.attention_dropout},
      {"classifier_dropout", nullptr},
      {"torch_dtype", "float32"},
  };
  if (config.classifier_dropout) object["classifier_dropout"] = *config.classifier_dropout;
  if (config.inner_dropout > 0) object["inner_dropout_prob"] = config.inner_dropout;  // a key of ours
  if (architecture != "BertForSequenceClassification") return object;
  // transformers takes the number of labels from id2label alone.
  for (size_t i = 0; i < static_cast<size_t>(config.num_labels); ++i) {
    const std::string name = config.labels.empty() ? default_label(i) : config.labels[i];
    object["id2label"][std::to_string(i)] = name;
    object["label2id"][name] = i;
  }
  return object;
}

}  // namespace syncopate::nn
