#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/nn/resnet/resnet.h"

namespace syncopate::nn {

struct LoadedResNet {
  std::unique_ptr<ResNet> model;
  bool fresh_head = false;         ///< the folder's has another number of labels
  std::vector<std::string> notes;  ///< sentences for the user: what was left out, what starts fresh
};

/// Loads a folder that save_resnet wrote: config.json and model.safetensors, the running statistics
/// included. With `num_labels` other than the folder's the head starts fresh from `seed`. `settle` may change
/// what has no bearing on shapes (names of labels, normalisation) before the model is made. Throws DataError.
LoadedResNet load_resnet(const std::filesystem::path& folder, std::optional<int64_t> num_labels,
                         uint64_t seed, const std::function<void(ResNetConfig&)>& settle = {});

/// Loading what this writes gives the same bits.
void save_resnet(const std::filesystem::path& folder, const ResNet& model);

}  // namespace syncopate::nn
