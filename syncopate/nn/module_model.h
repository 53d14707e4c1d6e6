#pragma once

#include <torch/nn/module.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/nn/example_noise.h"
#include "syncopate/nn/model.h"

namespace syncopate::nn {

/// Makes a Model of any libtorch module, given how to compute its loss on a batch. What requires no gradient
/// is a constant; a parameter that is registered twice is one. Costs a parse of libtorch's module
/// header: include it where such a model is made, nowhere else.
class ModuleModel : public Model {
 public:
  using LossFunction = std::function<Loss(const Batch&)>;
  /// Without `loss` the module's owner computes it.
  explicit ModuleModel(std::shared_ptr<torch::nn::Module> module, LossFunction loss = {})
      : module_(std::move(module)), loss_(std::move(loss)) {}

  using Model::buffers;
  using Model::forward;
  using Model::parameters;
  std::vector<tensor::NamedTensor> parameters(LayerRange layers) const override {
    if (!layers.has(0)) return {};
    return chosen([](const at::Tensor& parameter) { return parameter.requires_grad(); });
  }
  std::vector<tensor::NamedTensor> constants() const override {
    return chosen([](const at::Tensor& parameter) { return !parameter.requires_grad(); });
  }
  std::vector<tensor::NamedTensor> buffers(LayerRange layers) const override {
    std::vector<tensor::NamedTensor> found;
    if (!layers.has(0)) return found;
    for (const auto& item : module_->named_buffers()) add_new(item.key(), item.value(), found);
    return found;
  }
  /// Training, every part of the module is in the mode that its owner chose.
  void set_mode(Mode mode) override {
    mode_ = mode;
    if (!mode.training && !set_aside_) {
      set_aside_.emplace();
      for (const auto& part : module_->modules()) {
        if (part->is_training()) set_aside_->push_back(part);
      }
      module_->eval();
    } else if (mode.training && set_aside_) {
      // One by one, without its children: some may have been in evaluation mode.
      for (const auto& part : *set_aside_) train_alone(*part);
      set_aside_.reset();
    }
  }
  int depth() const override { return 1; }
  at::Tensor forward(at::Tensor, const Batch&, LayerRange) override {
    return {};
  }  // the loss function does it all
  Loss loss(const at::Tensor&, const Batch& batch) const override {
    check(loss_ != nullptr, "a module without a loss function is trained by the losses that its owner gives");
    if (!mode_.training) return loss_(batch);
    const auto parameters = module_->parameters();
    const ExampleNoise noise(mode_.noise_key, batch.ids,
                             parameters.empty() ? c10::kCPU : parameters.front().device());
    return loss_(batch);
  }

 private:
  template <typename Wanted>
  std::vector<tensor::NamedTensor> chosen(const Wanted& wanted) const {
    std::vector<tensor::NamedTensor> found;
    for (const auto& item : module_->named_parameters()) {
      if (item.value().defined() && wanted(item.value())) add_new(item.key(), item.value(), found);
    }
    return found;
  }
  static void add_new(const std::string& name, const at::Tensor& tensor,
                      std::vector<tensor::NamedTensor>& found) {
    const bool there = std::any_of(found.begin(), found.end(),
                                   [&](const auto& other) { return other.tensor.is_same(tensor); });
    if (tensor.defined() && !there) found.push_back({name, tensor});
  }
  static void train_alone(torch::nn::Module& part) {
    std::vector<std::shared_ptr<torch::nn::Module>> resting;
    for (const auto& child : part.modules(/*include_self=*/false)) {
      if (!child->is_training()) resting.push_back(child);
    }
    part.train();
    for (const auto& child : resting) child->eval();
  }

  std::shared_ptr<torch::nn::Module> module_;
  LossFunction loss_;
  Mode mode_;
  std::optional<std::vector<std::shared_ptr<torch::nn::Module>>> set_aside_;  ///< evaluating: who trains
};

}  // namespace syncopate::nn
