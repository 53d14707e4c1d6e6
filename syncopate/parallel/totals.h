#pragma once

#include <ATen/core/Tensor.h>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/engine.h"

namespace syncopate::parallel {

/// A step's loss and count summed over ranks, and whether any rank was asked to stop. The exchange is started
/// after the last forward pass and runs behind the backward pass.
class Totals {
 public:
  explicit Totals(comm::Group& group);
  void start(const LocalLoss& mine, bool stop);
  void wait() { pending_.wait(); }

  double loss_sum() const;
  double count() const;
  bool stop() const;

 private:
  comm::Group& group_;
  at::Tensor sums_;
  comm::Pending pending_;
};

}  // namespace syncopate::parallel
