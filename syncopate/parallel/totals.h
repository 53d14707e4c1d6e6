#pragma once

#include <ATen/core/Tensor.h>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/engine.h"

namespace syncopate::parallel {

/// A step's loss and count summed over ranks, whether any rank was asked to stop, and whether rank 0 says
/// that time is up. The exchange is started after the last forward pass and runs behind the backward pass.
class Totals {
 public:
  explicit Totals(comm::Group& group);
  void start(const LocalLoss& mine, bool stop, bool time_is_up = false);
  void wait() { pending_.wait(); }

  double loss_sum() const;
  double count() const;
  bool stop() const;
  bool time_is_up() const;

 private:
  comm::Group& group_;
  at::Tensor sums_;
  comm::Pending pending_;
};

}  // namespace syncopate::parallel
