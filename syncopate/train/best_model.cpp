#include "syncopate/train/best_model.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/train/checkpoint.h"
#include "syncopate/train/checkpoint_parts.h"

namespace syncopate::train {
namespace {

std::vector<parallel::StateTensor> tensors_of(const nn::Model& model) {
  std::vector<parallel::StateTensor> all;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    all.push_back({.name = name, .tensor = tensor, .scope = parallel::Scope::kCommon});
  };
  for (const auto& [name, tensor] : model.parameters()) add("model." + name, tensor);
  for (const auto& [name, tensor] : model.buffers()) add("buffer." + name, tensor);
  return all;
}

}  // namespace

std::filesystem::path BestModel::path_of(int64_t step) const {
  return folder_ / fmt::format("best-{}.safetensors", step);
}

void BestModel::offer(const nn::Model& model, const record::EvalRecord& eval) {
  if (best_ && !record::better(eval, *best_)) return;
  best_ = eval;
  const std::vector<tensor::NamedTensor> whole = gather(group_, tensors_of(model));
  at_rank_zero(group_, [&] {
    save_checkpoint(path_of(eval.step), {.tensors = whole, .state = record::to_json(eval)});
    remove_others();
  });
}

void BestModel::load(nn::Model& model) {
  check(best_.has_value(), "a model was offered");
  const at::NoGradGuard no_grad;
  const std::vector<parallel::StateTensor> tensors = tensors_of(model);
  std::map<std::string, at::Tensor> saved;
  at_rank_zero(group_, [&] {
    for (const auto& [name, tensor] : load_checkpoint(path_of(best_->step)).tensors) saved[name] = tensor;
    for (const parallel::StateTensor& each : tensors) {
      const auto found = saved.find(each.name);
      if (found == saved.end() || found->second.sizes() != each.tensor.sizes()) {
        throw DataError("{} does not hold this run's model: {} is missing or has another shape",
                        path_of(best_->step).string(), each.name);
      }
    }
  });
  spread(group_, tensors, saved);
}

nlohmann::ordered_json BestModel::state() const {
  return best_ ? record::to_json(*best_) : nlohmann::ordered_json();
}

void BestModel::saved() {
  saved_step_ = best_ ? best_->step : -1;
  if (group_.rank() == 0) remove_others();
}

void BestModel::restore(const nlohmann::ordered_json& state) {
  best_.reset();
  if (!state.is_null()) best_ = record::eval_from_json(state);
  at_rank_zero(group_, [&] {
    if (best_) load_checkpoint(path_of(best_->step));  // throws where it is not as it was written
  });
  saved();
}

void BestModel::remove_others() {
  std::error_code unlisted;  // what stays does no harm
  for (const auto& entry : std::filesystem::directory_iterator(folder_, unlisted)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("best-") || !name.ends_with(".safetensors")) continue;
    if (best_ && entry.path() == path_of(best_->step)) continue;
    if (saved_step_ >= 0 && entry.path() == path_of(saved_step_)) continue;
    std::filesystem::remove(entry.path(), unlisted);
  }
}

}  // namespace syncopate::train
