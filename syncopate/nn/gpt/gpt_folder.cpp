#include "syncopate/nn/gpt/gpt_folder.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/nn/model_folder.h"
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

/// Apart from the masks that old files keep and the head, which was looked at.
std::vector<std::string> leftovers(const WeightFiles& files, const std::set<std::string>& used) {
  std::vector<std::string> left;
  for (const std::string& name : files.names()) {
    const bool mask = name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
    if (!used.contains(name) && !mask && name != kHead) left.push_back(name);
  }
  return left;
}

}  // namespace

LoadedGpt load_gpt(const std::filesystem::path& folder, uint64_t,
                   const std::function<void(GptConfig&)>& settle) {
  const std::string where = folder.string();
  require_model_folder(folder, gpt_preset_names());
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
  note_leftovers(leftovers(files, used), where, "a language model", loaded.notes);
  return loaded;
}

void save_gpt(const std::filesystem::path& folder, const Gpt& model) {
  write_model_folder(folder, model.parameters(), gpt_config_to_json(model.config()));
}

}  // namespace syncopate::nn
