#include "syncopate/nn/resnet/resnet_folder.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/nn/model_folder.h"
#include "syncopate/nn/weight_files.h"

namespace syncopate::nn {
namespace {

std::vector<tensor::NamedTensor> everything(const ResNet& model) {
  std::vector<tensor::NamedTensor> all = model.parameters();
  for (const auto& each : model.buffers()) all.push_back(each);
  return all;
}

}  // namespace

LoadedResNet load_resnet(const std::filesystem::path& folder, std::optional<int64_t> num_labels,
                         uint64_t seed, const std::function<void(ResNetConfig&)>& settle) {
  const std::string where = folder.string();
  require_model_folder(folder, resnet_preset_names());
  LoadedResNet loaded;
  ResNetConfig config = read_resnet_config(folder / "config.json");
  const WeightFiles files(folder);
  if (num_labels && *num_labels != config.num_labels) {
    loaded.fresh_head = true;
    loaded.notes.push_back(fmt::format("the head of {} has {} labels and {} are needed: a fresh one is used",
                                       where, config.num_labels, *num_labels));
    config.num_labels = *num_labels;
    config.labels.clear();
  }
  if (settle) {
    const int64_t labels = config.num_labels;
    settle(config);
    check(config.num_labels == labels, "settling a model's configuration changed its number of labels");
  }
  loaded.model = std::make_unique<ResNet>(config);
  for (const auto& [name, value] : everything(*loaded.model)) {
    if (loaded.fresh_head && name.starts_with("fc.")) continue;
    value.detach().copy_(files.read(name, value.sizes()));
  }
  if (loaded.fresh_head) loaded.model->initialize_head(seed);
  return loaded;
}

void save_resnet(const std::filesystem::path& folder, const ResNet& model) {
  write_model_folder(folder, everything(model), resnet_config_to_json(model.config()));
}

}  // namespace syncopate::nn
