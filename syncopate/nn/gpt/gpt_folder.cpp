#include "syncopate/nn/gpt/gpt_folder.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/nn/weight_files.h"

namespace syncopate::nn {
namespace {

constexpr const char* kWords = "wte.weight";
constexpr const char* kHead = "lm_head.weight";

void check_head(const WeightFiles& files, const at::Tensor& words_VD, const std::string& folder) {
  if (!files.contains(kHead)) return;
  if (!at::equal(files.read(kHead, words_VD.sizes()), words_VD.detach())) {
    throw DataError(
        "{} has a head (lm_head.weight) apart from its word embeddings; only tied ones are supported",
        folder);
  }
}

/// Says which tensors were left out, apart from the masks that old files keep and the head, which was looked
/// at.
void note_leftovers(const WeightFiles& files, const std::set<std::string>& used, const std::string& folder,
                    std::vector<std::string>& notes) {
  std::vector<std::string> left;
  for (const std::string& name : files.names()) {
    const bool mask = name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
    if (!used.contains(name) && !mask && name != kHead) left.push_back(name);
  }
  if (left.empty()) return;
  const size_t shown = std::min<size_t>(left.size(), 3);
  notes.push_back(
      fmt::format("{} tensors of {} have no place in a language model and were left out ({}{})", left.size(),
                  folder, fmt::join(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                  left.size() > shown ? ", ..." : ""));
}

}  // namespace

LoadedGpt load_gpt(const std::filesystem::path& folder, uint64_t,
                   const std::function<void(GptConfig&)>& settle) {
  const std::string where = folder.string();
  if (!std::filesystem::is_directory(folder)) {
    throw DataError(
        "there is no model folder {}; give a preset ({}) or a folder with config.json and model.safetensors",
        where, fmt::join(gpt_preset_names(), ", "));
  }
  GptConfig config = read_gpt_config(folder / "config.json");
  const WeightFiles files(folder);
  files.require_words(kWords, config.vocab_size);
  if (settle) settle(config);
  LoadedGpt loaded;
  loaded.model = std::make_unique<Gpt>(config);
  std::set<std::string> used;
  for (const auto& [name, value] : loaded.model->parameters()) {
    const std::string plain = plain_weight_name(name);
    value.detach().copy_(files.read(plain, value.sizes()));
    used.insert(plain);
  }
  check_head(files, loaded.model->parameters().front().tensor, where);
  note_leftovers(files, used, where, loaded.notes);
  return loaded;
}

void save_gpt(const std::filesystem::path& folder, const Gpt& model) {
  make_folder(folder);
  tensor::write_safetensors(folder / "model.safetensors", model.parameters(), {{"format", "pt"}});
  write_file_atomically(folder / "config.json", gpt_config_to_json(model.config()).dump(2) + "\n");
}

}  // namespace syncopate::nn
