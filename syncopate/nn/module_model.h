#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <utility>

#include "syncopate/nn/model.h"

namespace syncopate::nn {

/// Makes a Model of any libtorch module, given how to compute its loss on a batch. Costs a parse of
/// libtorch's module header: include it where such a model is made, nowhere else.
class ModuleModel : public Model {
 public:
  using LossFunction = std::function<Loss(const Batch&)>;
  ModuleModel(std::shared_ptr<torch::nn::Module> module, LossFunction loss)
      : module_(std::move(module)), loss_(std::move(loss)) {}

  std::vector<tensor::NamedTensor> parameters() const override { return named(module_->named_parameters()); }
  std::vector<tensor::NamedTensor> buffers() const override { return named(module_->named_buffers()); }
  void set_mode(Mode mode) override { module_->train(mode.training); }
  int depth() const override { return 1; }
  using Model::forward;
  at::Tensor forward(at::Tensor, const Batch&, LayerRange) override {
    return {};
  }  // the loss function does it all
  Loss loss(const at::Tensor&, const Batch& batch) const override { return loss_(batch); }

 private:
  template <typename Named>
  static std::vector<tensor::NamedTensor> named(const Named& items) {
    std::vector<tensor::NamedTensor> tensors;
    for (const auto& item : items) tensors.push_back({item.key(), item.value()});
    return tensors;
  }

  std::shared_ptr<torch::nn::Module> module_;
  LossFunction loss_;
};

}  // namespace syncopate::nn
