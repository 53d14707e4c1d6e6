#include "syncopate/parallel/strategies/statistics.h"

#include <ATen/ATen.h>

namespace syncopate::parallel {

Statistics::Statistics(std::vector<StateTensor> tensors, bool aside) : aside_(aside) {
  for (StateTensor& each : tensors) {
    items_.push_back({each, aside ? at::zeros_like(each.tensor) : each.tensor, {}});
  }
}

void Statistics::start(comm::Group& group, double weight) {
  const at::NoGradGuard no_grad;
  for (Item& item : items_) {
    if (aside_) item.travelling.copy_(item.mine.tensor);
    item.travelling.mul_(weight);
    item.pending = group.all_reduce(item.travelling, comm::Op::kSum);
  }
}

void Statistics::apply() {
  const at::NoGradGuard no_grad;
  for (Item& item : items_) {
    item.pending.wait();
    if (aside_) item.mine.tensor.copy_(item.travelling);
  }
}

std::vector<StateTensor> Statistics::state() {
  std::vector<StateTensor> state;
  for (Item& item : items_) {
    item.pending.wait();
    if (!aside_) continue;
    state.push_back(item.mine);
    state.back().tensor = item.travelling;
  }
  return state;
}

}  // namespace syncopate::parallel
