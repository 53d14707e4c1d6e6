#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "syncopate/tensor/batch.h"

// A model folder as transformers lays it out: config.json and model.safetensors.
namespace syncopate::nn {

/// Throws DataError, naming the family's presets, when there is no such folder.
void require_model_folder(const std::filesystem::path& folder, const std::vector<std::string>& presets);

void write_model_folder(const std::filesystem::path& folder, const std::vector<tensor::NamedTensor>& tensors,
                        const nlohmann::json& config);

/// Says which tensors of the folder have no place in the model, if there are any.
void note_leftovers(const std::vector<std::string>& left, const std::string& folder, const char* model,
                    std::vector<std::string>& notes);

}  // namespace syncopate::nn
