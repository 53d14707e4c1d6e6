#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "syncopate/nn/gpt/gpt.h"

namespace syncopate::nn {

struct LoadedGpt {
  std::unique_ptr<Gpt> model;
  std::vector<std::string> notes;  ///< sentences for the user: what was left out
};

/// Loads a Hugging Face model folder: config.json and model.safetensors (or its shards) in any floating
/// type, with or without "transformer." before the names. Masks kept as buffers are left out; a head of its
/// own is refused unless it equals the table of words. Everything is in the folder, so `seed` draws nothing
/// yet; `settle` may change what has no bearing on shapes (dropout) before the model is made. Throws
/// DataError.
LoadedGpt load_gpt(const std::filesystem::path& folder, uint64_t seed,
                   const std::function<void(GptConfig&)>& settle = {});

/// Writes config.json and model.safetensors under Hugging Face's names; loading them gives the same bits.
void save_gpt(const std::filesystem::path& folder, const Gpt& model);

}  // namespace syncopate::nn
