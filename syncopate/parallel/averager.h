#pragma once

#include <ATen/core/Tensor.h>

#include "syncopate/comm/group.h"

namespace syncopate::parallel {

/// How ranks bring one tensor together: afterwards it holds, on every rank, the sum over ranks. The division
/// that makes it a mean is by the global count of examples, known to the replica, so that uneven ranks weigh
/// right.
class Averager {
 public:
  virtual ~Averager() = default;
  /// In place. Every rank starts the same tensors in the same order.
  virtual comm::Pending start(at::Tensor tensor) = 0;
};

}  // namespace syncopate::parallel
