#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/nn/transformer_config.h"

namespace syncopate::nn {

/// The shape of a BERT and its regularisation. The defaults are bert-base's.
struct BertConfig : TransformerConfig {
  BertConfig() : TransformerConfig{.vocab_size = 30522, .max_positions = 512, .layer_norm_eps = 1e-12} {}

  int64_t type_vocab = 2;
  int64_t pad_token = 0;  ///< its word embedding starts at zero and is not trained
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  double inner_dropout = 0.0;                ///< after the feed-forward activation; BERT has none there
  std::optional<double> classifier_dropout;  ///< hidden_dropout where not set
  int64_t num_labels = 2;
  std::vector<std::string> labels;  ///< names of the classes, or empty

  void set_dropout(double rate);  ///< every place BERT has one (not inner_dropout)
  void validate() const;          ///< throws ConfigError

  friend bool operator==(const BertConfig&, const BertConfig&) = default;
};

/// "bert-tiny", "bert-mini", "bert-small", "bert-base", "bert-large".
std::vector<std::string> preset_names();
bool is_preset(std::string_view name);
BertConfig preset(std::string_view name);  ///< throws ConfigError with a suggestion

/// Hugging Face's config.json. Unknown keys are ignored; a key of the wrong kind, an activation or a position
/// embedding we do not have, or another model type is a DataError that names the file.
BertConfig read_bert_config(const std::filesystem::path& path);
BertConfig parse_bert_config(const nlohmann::json& json, const std::string& where);
/// `architecture` is transformers' class of the model; labels are written for a classifier alone.
nlohmann::json bert_config_to_json(const BertConfig& config,
                                   const std::string& architecture = "BertForSequenceClassification");

}  // namespace syncopate::nn
