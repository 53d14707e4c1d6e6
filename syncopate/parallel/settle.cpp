#include "syncopate/parallel/settle.h"

#include <ATen/ATen.h>

namespace syncopate::parallel {

bool buffers_differ(const Replica& replica, const comm::Group& replicas) {
  return replicas.size() > 1 && !replica.model.every_rank_computes() && !replica.model.buffers().empty();
}

Settled settle(Strategy& strategy, Replica& replica, comm::Group& replicas, Buffers buffers) {
  const Settled settled = strategy.settle(replica);
  if (settled.buffers || !buffers_differ(replica, replicas)) return settled;
  const double workers = replicas.size();
  for (const auto& [name, buffer] : replica.model.buffers()) {
    if (buffers == Buffers::kMean && buffer.is_floating_point()) {
      at::Tensor(buffer).div_(workers);
      replicas.all_reduce(buffer, comm::Op::kSum).wait();
    } else {
      replicas.broadcast(buffer, 0).wait();
    }
  }
  return settled;
}

}  // namespace syncopate::parallel
