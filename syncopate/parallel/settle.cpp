#include "syncopate/parallel/settle.h"

#include <ATen/ATen.h>

namespace syncopate::parallel {

bool buffers_differ(const Replica& replica, const comm::Group& replicas) {
  return replicas.size() > 1 && !replica.model.every_rank_computes() && !replica.model.buffers().empty();
}

Settled settle(Strategy& strategy, Replica& replica, comm::Group& replicas, Buffers buffers) {
  if (!buffers_differ(replica, replicas)) return strategy.settle(replica);
  const std::vector<tensor::NamedTensor> all = replica.model.buffers();
  const bool mean = buffers == Buffers::kMean;
  std::vector<at::Tensor> first;  // rank 0's: the strategy may average them
  for (const auto& named : all) {
    if (!mean && replicas.rank() == 0) first.push_back(named.tensor.clone());
  }
  Settled settled = strategy.settle(replica);
  if (settled.buffers && mean) return settled;
  for (size_t i = 0; i < all.size(); ++i) {
    at::Tensor buffer = all[i].tensor;
    if (mean && buffer.is_floating_point()) {
      buffer.div_(static_cast<double>(replicas.size()));
      replicas.all_reduce(buffer, comm::Op::kSum).wait();
    } else {
      if (!first.empty()) buffer.copy_(first[i]);
      replicas.broadcast(buffer, 0).wait();
    }
  }
  settled.buffers = true;
  return settled;
}

AsSettled::AsSettled(Strategy& strategy, Replica& replica, comm::Group& replicas, Buffers buffers) {
  if (strategy.traits().replicas_differ) tensors_.push_back(replica.params.values);
  for (const auto& named : replica.model.buffers()) tensors_.push_back(named.tensor);
  for (const at::Tensor& tensor : tensors_) own_.push_back(tensor.clone());
  settled_ = settle(strategy, replica, replicas, buffers);
}

AsSettled::~AsSettled() {
  for (size_t i = 0; i < own_.size(); ++i) tensors_[i].copy_(own_[i]);
}

}  // namespace syncopate::parallel
