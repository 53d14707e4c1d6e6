#include "syncopate/parallel/engines/block_chain.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "syncopate/base/error.h"

namespace syncopate::parallel {
namespace {

at::Tensor without_history(const at::Tensor& tensor) { return tensor.defined() ? tensor.detach() : tensor; }

at::Tensor leaf_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().set_requires_grad(true) : tensor;
}

}  // namespace

class BlockChain::StandIns {
 public:
  StandIns(nn::Model& model, const std::vector<Tied>& tied) : model_(model), active_(!tied.empty()) {
    std::vector<at::Tensor> leaves;
    for (const Tied& each : tied) leaves.push_back(each.leaf);
    if (active_) model_.stand_in_for_tied(std::move(leaves));
  }
  ~StandIns() {
    if (active_) model_.stand_in_for_tied({});
  }
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;

 private:
  nn::Model& model_;
  bool active_;
};

BlockChain::BlockChain(nn::Model& model, const ChainOptions& options, at::Tensor hidden, tensor::Batch batch,
                       nn::LayerRange layers)
    : model_(&model), options_(options), batch_(std::move(batch)) {
  check(0 <= layers.first && layers.first < layers.last && layers.last <= model.depth(),
        "a chain of layers the model lacks");
  model.set_mode(options_.mode);
  const int step = options_.recompute ? 1 : layers.last - layers.first;
  for (int first = layers.first; first < layers.last; first += step) {
    links_.push_back({.layers = {first, first + step}});
  }
  const bool ends = model.has_loss() && layers.last == model.depth();
  if (ends && layers.first == 0 && links_.size() > 1) {
    for (const auto& [name, parameter] : model.tied()) tied_.push_back({parameter, leaf_of(parameter)});
  }
  output_ = std::move(hidden);
  for (size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    link.entered = leaf_of(output_);
    if (!options_.recompute || (ends && i + 1 == links_.size())) {
      link.left = run(link, false);
      output_ = without_history(link.left);
    } else {
      const at::NoGradGuard no_grad;
      output_ = run(link, false);
    }
  }
}

at::Tensor BlockChain::run(const Link& link, bool again) {
  nn::Mode mode = options_.mode;
  mode.again = again;
  if (again) model_->set_mode(mode);
  at::Tensor left;
  {
    // One region for each: weights that are cast where no gradient is wanted must not be used where one is.
    const tensor::Autocast autocast(options_.precision, options_.device);
    const StandIns stand_ins(*model_, tied_);
    left = model_->forward(link.entered, batch_, link.layers);
  }
  if (again) model_->set_mode(options_.mode);
  return left;
}

tensor::Loss BlockChain::loss() {
  check(!links_.empty() && model_->has_loss() && links_.back().layers.last == model_->depth(),
        "a loss comes after the last layer, before the backward pass");
  const tensor::Autocast autocast(options_.precision, options_.device);
  const StandIns stand_ins(*model_, tied_);
  const tensor::Loss made = model_->loss(links_.back().left, batch_);
  loss_ = made.sum;
  return {made.sum.detach(), made.count};
}

at::Tensor BlockChain::backward(const at::Tensor& output_grad) {
  check(!links_.empty(), "a chain has one backward pass");
  output_.reset();
  at::Tensor grad = output_grad;
  while (!links_.empty()) {
    Link link = std::move(links_.back());
    links_.pop_back();
    const at::Tensor end = link.left.defined() ? std::move(link.left) : run(link, true);
    grad = differentiate(link, end, grad);
  }
  return grad;
}

at::Tensor BlockChain::backward_from_loss(double scale) {
  check(loss_.defined(), "a backward pass from a loss that nobody asked for");
  return backward_from_loss(at::full({}, scale, loss_.options()));
}

at::Tensor BlockChain::backward_from_loss(const at::Tensor& scale) {
  check(loss_.defined() && !links_.empty(), "a backward pass from a loss that nobody asked for");
  const at::Tensor grad = scale.to(loss_.scalar_type());
  links_.back().left = std::move(loss_);
  return backward(grad);
}

at::Tensor BlockChain::differentiate(const Link& link, const at::Tensor& end, const at::Tensor& grad) {
  std::vector<at::Tensor> ends{end}, grads{grad};
  if (link.layers.first == 0) {
    // What the last layer made of them goes in together with what this one makes, in the order in which one
    // pass over both would add them.
    for (const Tied& each : tied_) {
      if (!each.leaf.grad().defined()) continue;
      ends.push_back(each.parameter);
      grads.push_back(each.leaf.grad());
    }
    tied_.clear();
  }
  torch::autograd::backward(ends, grads);
  return link.entered.defined() ? link.entered.grad() : at::Tensor();
}

}  // namespace syncopate::parallel
