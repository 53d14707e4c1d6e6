#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/engine.h"

namespace syncopate::parallel {

/// A loss summed over ranks, and the number of what it is a sum over.
struct TotalLoss {
  double sum = 0, count = 0;
};

/// A step's loss and count summed over ranks, those of earlier steps that were not told yet, whether any rank
/// was asked to stop, and whether rank 0 says that time is up: one exchange. It is started after the last
/// forward pass and runs behind the backward pass.
class Totals {
 public:
  explicit Totals(comm::Group& group) : group_(group) {}
  /// As many `earlier` steps on every rank.
  void start(const LocalLoss& mine, std::span<const LocalLoss> earlier, bool stop, bool time_is_up = false);
  void wait() { pending_.wait(); }

  TotalLoss loss() const { return at(0); }
  std::vector<TotalLoss> earlier() const;  ///< in the order in which they were given
  bool stop() const;
  bool time_is_up() const;

 private:
  TotalLoss at(int64_t row) const;

  comm::Group& group_;
  at::Tensor sums_;  ///< double [2 + earlier, 2]: the step's loss, the two flags, earlier steps' losses
  comm::Pending pending_;
};

}  // namespace syncopate::parallel
