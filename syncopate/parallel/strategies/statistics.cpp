#include "syncopate/parallel/strategies/statistics.h"

#include <ATen/ATen.h>

namespace syncopate::parallel {

Statistics::Statistics(std::vector<tensor::NamedTensor> tensors, bool aside) : aside_(aside) {
  for (auto& [name, tensor] : tensors) {
    items_.push_back({name, tensor, aside ? at::zeros_like(tensor) : tensor, {}});
  }
}

void Statistics::start(comm::Group& group, double weight) {
  const at::NoGradGuard no_grad;
  for (Item& item : items_) {
    if (aside_) item.travelling.copy_(item.mine);
    item.travelling.mul_(weight);
    item.pending = group.all_reduce(item.travelling, comm::Op::kSum);
  }
}

void Statistics::apply() {
  const at::NoGradGuard no_grad;
  for (Item& item : items_) {
    item.pending.wait();
    if (aside_) item.mine.copy_(item.travelling);
  }
}

std::vector<tensor::NamedTensor> Statistics::state() {
  std::vector<tensor::NamedTensor> state;
  for (Item& item : items_) {
    item.pending.wait();
    if (aside_) state.push_back({item.name, item.travelling});
  }
  return state;
}

}  // namespace syncopate::parallel
