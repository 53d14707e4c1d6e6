#pragma once

#include <torch/nn/module.h>

#include <algorithm>
#include <functional>
#include <memory>
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

  std::vector<tensor::NamedTensor> parameters() const override {
    return chosen([](const at::Tensor& parameter) { return parameter.requires_grad(); });
  }
  std::vector<tensor::NamedTensor> constants() const override {
    return chosen([](const at::Tensor& parameter) { return !parameter.requires_grad(); });
  }
  std::vector<tensor::NamedTensor> buffers() const override {
    std::vector<tensor::NamedTensor> all;
    for (const auto& item : module_->named_buffers()) {
      if (item.value().defined()) all.push_back({item.key(), item.value()});
    }
    return all;
  }
  void set_mode(Mode mode) override {
    mode_ = mode;
    module_->train(mode.training);
  }
  int depth() const override { return 1; }
  using Model::forward;
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
      const at::Tensor& parameter = item.value();
      const bool there = std::any_of(found.begin(), found.end(),
                                     [&](const auto& other) { return other.tensor.is_same(parameter); });
      if (parameter.defined() && wanted(parameter) && !there) found.push_back({item.key(), parameter});
    }
    return found;
  }

  std::shared_ptr<torch::nn::Module> module_;
  LossFunction loss_;
  Mode mode_;
};

}  // namespace syncopate::nn
