#include "syncopate/train/replica_parts.h"

#include <ATen/ATen.h>

namespace syncopate::train {

using parallel::append;
using parallel::by_parameter;
using parallel::Scope;
using parallel::StateTensor;
using Json = nlohmann::ordered_json;

bool ModelPart::parameters_differ() const {
  return trained_.strategy.traits().replicas_differ;  // one rank's, too: an exchange may be under way
}

bool ModelPart::buffers_differ() const { return parallel::buffers_differ(trained_.replica, trained_.group); }

std::vector<StateTensor> ModelPart::common() const {
  std::vector<StateTensor> tensors = by_parameter(
      trained_.replica.params,
      {{.name = "model", .tensor = trained_.replica.params.values, .scope = Scope::kCommon, .laid_at = 0}});
  for (const auto& [name, buffer] : trained_.replica.model.buffers())
    tensors.push_back({.name = "buffer." + name, .tensor = buffer, .scope = Scope::kCommon});
  for (const auto& [name, constant] : trained_.replica.model.constants())
    tensors.push_back({.name = "constant." + name, .tensor = constant, .scope = Scope::kCommon});
  return tensors;
}

std::vector<StateTensor> ModelPart::own() const {
  std::vector<StateTensor> tensors;
  for (StateTensor& each : common()) {
    if (each.name.starts_with("constant.")) continue;
    if (!(each.name.starts_with("buffer.") ? buffers_differ() : parameters_differ())) continue;
    each.scope = Scope::kOwn;
    tensors.push_back(std::move(each));
  }
  return tensors;
}

std::vector<StateTensor> ModelPart::to_save() {
  if (own().empty()) return common();
  std::vector<StateTensor> tensors;
  {
    const parallel::AsSettled settled(trained_.strategy, trained_.replica, trained_.group, trained_.buffers);
    tensors = common();
    if (trained_.group.rank() == 0 || trained_.staged) {  // who may give it to the file
      for (StateTensor& each : tensors) each.tensor = each.tensor.clone();
    }
  }
  for (StateTensor& each : own()) tensors.push_back(std::move(each));
  return tensors;
}

std::vector<StateTensor> ModelPart::to_restore() {
  std::vector<StateTensor> tensors = common();
  for (StateTensor& each : own()) tensors.push_back(std::move(each));
  return tensors;
}

void ModelPart::restored(const Json&, Resumption& how) {
  if (how.resized() && trained_.strategy.traits().replicas_differ)
    how.note("every worker starts from the one model that was evaluated");
}

OptimizerPart::OptimizerPart(const Trained& trained) : trained_(trained), steps_(at::zeros({1}, at::kLong)) {}

std::vector<StateTensor> OptimizerPart::to_save() {
  // One of a user's own may keep other arrays, too.
  const auto laid_out = [&](const at::Tensor& tensor) {
    return tensor.dim() == 1 && tensor.numel() == trained_.replica.params.size();
  };
  const parallel::Traits traits = trained_.strategy.traits();
  std::vector<StateTensor> flat;
  for (const auto& [name, tensor] : trained_.replica.optimizer.state()) {
    flat.push_back({.name = "optimizer." + name,
                    .tensor = tensor,
                    .scope = traits.optimizers_differ ? Scope::kMean : Scope::kCommon,
                    .laid_at = laid_out(tensor) ? std::optional<int64_t>(0) : std::nullopt,
                    .when_resized = traits.optimizers_differ
                                        ? "every worker's optimizer starts from the mean of what they had"
                                        : ""});
  }
  std::vector<StateTensor> tensors = by_parameter(trained_.replica.params, flat);
  steps_.fill_(trained_.replica.optimizer.steps_done());
  if (traits.counts_apart) tensors.push_back({.name = "optimizer.steps", .tensor = steps_});
  return tensors;
}

Json OptimizerPart::values() { return {{"steps", trained_.replica.optimizer.steps_done()}}; }

void OptimizerPart::restored(const Json& values, Resumption& how) {
  const bool own = trained_.strategy.traits().counts_apart && !how.resized();
  trained_.replica.optimizer.set_steps_done(own ? steps_.item<int64_t>() : values.at("steps").get<int64_t>());
}

LossScalePart::LossScalePart(const Trained& trained)
    : trained_(trained), state_(at::zeros({3}, at::kDouble)) {}

std::vector<StateTensor> LossScalePart::to_save() {
  if (trained_.replica.loss_scale == nullptr || !trained_.strategy.traits().counts_apart) return {};
  const auto [value, good_steps, skipped] = trained_.replica.loss_scale->state();
  double* const state = state_.data_ptr<double>();
  state[0] = value, state[1] = good_steps, state[2] = skipped;
  return {{.name = "loss_scale", .tensor = state_}};
}

Json LossScalePart::values() {
  if (trained_.replica.loss_scale == nullptr) return {};
  const auto [value, good_steps, skipped] = trained_.replica.loss_scale->state();
  at::Tensor by_all = at::full({1}, static_cast<double>(skipped), at::kDouble);
  if (trained_.strategy.traits().counts_apart) trained_.group.all_reduce(by_all, comm::Op::kSum).wait();
  return {{"value", value}, {"good_steps", good_steps}, {"skipped", by_all.item<double>()}};
}

void LossScalePart::restored(const Json& values, Resumption& how) {
  if (trained_.replica.loss_scale == nullptr || values.is_null()) return;
  const bool apart = trained_.strategy.traits().counts_apart;
  optim::LossScale::State state{
      .value = values.at("value"), .good_steps = values.at("good_steps"), .skipped = values.at("skipped")};
  if (apart && !how.resized()) {
    const double* const own = state_.data_ptr<double>();
    state = {.value = own[0], .good_steps = own[1], .skipped = own[2]};
  } else if (apart && trained_.group.rank() > 0) {
    state.skipped = 0;  // rank 0 has counted them for all
  }
  trained_.replica.loss_scale->restore(state);
}

std::vector<StateTensor> StrategyPart::to_save() {
  std::vector<StateTensor> tensors;
  append(tensors, "strategy.", by_parameter(trained_.replica.params, trained_.strategy.state()));
  return tensors;
}

void StrategyPart::restored(const Json&, Resumption& how) {
  if (how.resized()) trained_.strategy.resized(how.ranks_before);
  trained_.strategy.resumed(trained_.replica);
}

}  // namespace syncopate::train
