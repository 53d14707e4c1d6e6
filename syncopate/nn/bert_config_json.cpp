#include <map>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/nn/bert_config.h"

namespace syncopate::nn {
namespace {

using nlohmann::json;

/// Reads keys of one JSON object; absent and null keys leave the default.
class Reader {
 public:
  Reader(const json& object, const std::string& where) : object_(object), where_(where) {}

  void integer(const char* key, int64_t& into) const {
    const json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_number_integer()) wrong(key, "a whole number");
    into = value->get<int64_t>();
  }

  void number(const char* key, double& into) const {
    const json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_number()) wrong(key, "a number");
    into = value->get<double>();
  }

  std::string text(const char* key, const std::string& otherwise) const {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) wrong(key, "text");
    return value->get<std::string>();
  }

  const json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  [[noreturn]] void wrong(const char* key, const char* expected) const {
    throw DataError("{}: \"{}\" must be {}; correct the file", where_, key, expected);
  }

 private:
  const json& object_;
  const std::string& where_;
};

Activation activation_named(const std::string& name, const std::string& where) {
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::kGeluTanh;
  throw DataError(
      "{}: the activation \"{}\" is not supported; models with gelu, gelu_new or gelu_pytorch_tanh are",
      where, name);
}

std::string default_label(size_t number) { return fmt::format("LABEL_{}", number); }

/// The names of the classes from id2label: {"0": "no", "1": "yes"}.
void read_labels(const Reader& reader, BertConfig& config, const std::string& where) {
  reader.integer("num_labels", config.num_labels);
  const json* names = reader.find("id2label");
  if (names == nullptr) return;
  if (!names->is_object()) reader.wrong("id2label", "an object from class numbers to names");
  std::map<int64_t, std::string> by_number;
  for (const auto& [number, name] : names->items()) {
    const auto id = parse_integer(number);
    if (!id || !name.is_string()) reader.wrong("id2label", "an object from class numbers to names");
    by_number[*id] = name.get<std::string>();
  }
  config.num_labels = static_cast<int64_t>(by_number.size());
  config.labels.clear();
  for (const auto& [id, name] : by_number) {
    if (id != static_cast<int64_t>(config.labels.size())) {
      throw DataError("{}: \"id2label\" must number the classes 0, 1, 2, ...; correct the file", where);
    }
    config.labels.push_back(name);
  }
  // What is written for classes without names.
  bool nameless = true;
  for (size_t i = 0; i < config.labels.size(); ++i)
    nameless = nameless && config.labels[i] == default_label(i);
  if (nameless) config.labels.clear();
}

}  // namespace

BertConfig parse_bert_config(const json& object, const std::string& where) {
  if (!object.is_object()) throw DataError("{} is not a JSON object; give a model's config.json", where);
  const Reader reader(object, where);
  const std::string type = reader.text("model_type", "bert");
  if (type != "bert") throw DataError("{} describes a \"{}\" model; only \"bert\" is supported", where, type);
  const std::string positions = reader.text("position_embedding_type", "absolute");
  if (positions != "absolute") {
    throw DataError("{}: position embeddings of type \"{}\" are not supported; only \"absolute\" is", where,
                    positions);
  }
  BertConfig config;
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}) {
    if (reader.find(key) == nullptr)
      throw DataError("{} has no \"{}\"; give a BERT model's config.json", where, key);
  }
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
  config.activation = activation_named(reader.text("hidden_act", "gelu"), where);
  read_labels(reader, config, where);
  try {
    config.validate();
  } catch (const ConfigError& error) {
    throw DataError("{}: {}", where, error.what());
  }
  return config;
}

BertConfig read_bert_config(const std::filesystem::path& path) {
  const json parsed = json::parse(read_file(path, "model configuration"), nullptr, false);
  if (parsed.is_discarded()) throw DataError("{} is not JSON; give a model's config.json", path.string());
  return parse_bert_config(parsed, path.string());
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
