#include "syncopate/parallel/shared_update.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "syncopate/base/clock.h"
#include "syncopate/optim/clip.h"

namespace syncopate::parallel {

using optim::kNormBlock;

SharedUpdate::SharedUpdate(comm::Group& group, int64_t size, at::Tensor squares)
    : group_(group),
      mine_(share_of(size, group.rank(), group.size(), kNormBlock)),
      squares_(std::move(squares)) {}

void SharedUpdate::begin(comm::Group& group, Replica& replica) {
  tensor::FlatParams& params = replica.params;
  if (group.size() == 1 || !params.values.is_cpu() || params.half.defined() ||
      !replica.optimizer.updates_parts(params))
    return;
  std::vector<at::Tensor> own{params.values}, shared;
  for (const auto& named : replica.optimizer.state()) own.push_back(named.tensor);
  for (const at::Tensor& array : own) shared.push_back(group.common(array.numel(), array.scalar_type()));
  const at::Tensor sums = group.common(params.size(), params.grads.scalar_type());
  at::Tensor squares = group.common(optim::norm_blocks(params.size()), at::kDouble);
  const auto there = [](const at::Tensor& memory) { return memory.defined(); };
  if (!std::all_of(shared.begin(), shared.end(), there) || !there(sums) || !there(squares)) return;
  for (size_t i = 0; group.rank() == 0 && i < own.size(); ++i) shared[i].copy_(own[i].view({-1}));
  group.barrier();
  params.move_values(shared.front());
  // The optimizer's own tensors: a handle to one reaches it.
  for (size_t i = 1; i < own.size(); ++i) at::Tensor(own[i]).set_data(shared[i].view(own[i].sizes()));
  params.sums = sums;
  replica.shared = std::make_shared<SharedUpdate>(group, params.size(), std::move(squares));
}

double SharedUpdate::meet(Trace* trace, const char* what) const {
  const Trace::Span span(trace, Trace::Lane::kCompute, what);
  const Stopwatch watch;
  group_.barrier();
  return watch.seconds();
}

SharedUpdate::Norm SharedUpdate::norm(const Replica& replica, double scale) const {
  double* const squares = squares_.data_ptr<double>();
  optim::squares_of_blocks(replica.params.sums, mine_.begin / kNormBlock, optim::norm_blocks(mine_.end),
                           squares);
  const double waited = meet(replica.trace, "wait for the norm");
  return {.value = optim::norm_of_blocks(squares, squares_.numel(), scale), .waited = waited};
}

double SharedUpdate::step(const Replica& replica, double lr, double scale) const {
  replica.optimizer.step_part(replica.params, lr, scale, mine_.begin, mine_.end);
  return meet(replica.trace, "wait for the other parts");
}

}  // namespace syncopate::parallel
