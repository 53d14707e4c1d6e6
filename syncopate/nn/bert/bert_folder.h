#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/nn/bert/bert_heads.h"

namespace syncopate::nn {

template <typename Head>
struct Loaded {
  std::unique_ptr<Head> model;
  bool fresh_head = false;         ///< the folder had none that fits
  std::vector<std::string> notes;  ///< sentences for the user: what was left out, what starts fresh
};
using LoadedBert = Loaded<BertClassifier>;

struct LoadOptions {
  std::optional<int64_t> num_labels = {};  ///< a classifier's; as the folder says where not given
  uint64_t seed = 0;                       ///< of what starts fresh
  bool fresh_head = false;                 ///< a new head even where the folder has one that fits
  /// May change what has no bearing on shapes (dropout, names of labels) before the model is made.
  std::function<void(BertConfig&)> settle = {};
};

/// Loads a Hugging Face model folder: config.json and model.safetensors (or its shards, by
/// model.safetensors.index.json) in any floating type. Takes the names found in the wild: with or without
/// "bert.", LayerNorm's gamma and beta, buffers and other heads (left out). A head or pooler that the folder
/// lacks, or whose number of labels is another, starts fresh. Throws DataError. `Head`: BertClassifier,
/// BertMaskedLm or BertQuestionAnswering.
template <typename Head>
Loaded<Head> load_bert(const std::filesystem::path& folder, const LoadOptions& options);
extern template Loaded<BertClassifier> load_bert(const std::filesystem::path&, const LoadOptions&);
extern template Loaded<BertMaskedLm> load_bert(const std::filesystem::path&, const LoadOptions&);
extern template Loaded<BertQuestionAnswering> load_bert(const std::filesystem::path&, const LoadOptions&);

/// Writes config.json and model.safetensors under Hugging Face's names; loading them gives the same bits.
void save_bert(const std::filesystem::path& folder, const Bert& model);

}  // namespace syncopate::nn
