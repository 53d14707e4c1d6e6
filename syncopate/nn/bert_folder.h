#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/nn/bert.h"

namespace syncopate::nn {

struct LoadedBert {
  std::unique_ptr<BertClassifier> model;
  bool fresh_head = false;         ///< the folder had none that fits
  std::vector<std::string> notes;  ///< sentences for the user: what was left out, what starts fresh
};

/// Loads a Hugging Face model folder: config.json and model.safetensors (or its shards, by
/// model.safetensors.index.json) in any floating type. Takes the names found in the wild: with or without
/// "bert.", LayerNorm's gamma and beta, buffers and other heads (left out). With `num_labels` other than the
/// folder's, or without a head or pooler in the folder, those start fresh from `seed`. `settle` may change
/// what has no bearing on shapes (dropout, names of labels) before the model is made. Throws DataError.
LoadedBert load_bert(const std::filesystem::path& folder, std::optional<int64_t> num_labels, uint64_t seed,
                     const std::function<void(BertConfig&)>& settle = {});

/// Writes config.json and model.safetensors under Hugging Face's names; loading them gives the same bits.
void save_bert(const std::filesystem::path& folder, const BertClassifier& model);

}  // namespace syncopate::nn
