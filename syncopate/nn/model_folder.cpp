#include "syncopate/nn/model_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/tensor/safetensors.h"

namespace syncopate::nn {

void require_model_folder(const std::filesystem::path& folder, const std::vector<std::string>& presets) {
  if (std::filesystem::is_directory(folder)) return;
  throw DataError(
      "there is no model folder {}; give a preset ({}) or a folder with config.json and model.safetensors",
      folder.string(), fmt::join(presets, ", "));
}

void write_model_folder(const std::filesystem::path& folder, const std::vector<tensor::NamedTensor>& tensors,
                        const nlohmann::json& config) {
  make_folder(folder);
  tensor::write_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
  write_file_atomically(folder / "config.json", config.dump(2) + "\n");
}

void note_leftovers(const std::vector<std::string>& left, const std::string& folder, const char* model,
                    std::vector<std::string>& notes) {
  if (left.empty()) return;
  const size_t shown = std::min<size_t>(left.size(), 3);
  notes.push_back(
      fmt::format("{} tensors of {} have no place in {} and were left out ({}{})", left.size(), folder, model,
                  fmt::join(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                  left.size() > shown ? ", ..." : ""));
}

}  // namespace syncopate::nn
