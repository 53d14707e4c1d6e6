#pragma once

#include <ATen/core/Tensor.h>

#include "syncopate/parallel/replica.h"

namespace syncopate::train {

/// What a rank counts by itself where replicas differ or run free: how many updates its optimizer made, and
/// how it scales its loss. One tensor, so that a checkpoint can hold every rank's.
class RankCounters {
 public:
  RankCounters();
  void note(const parallel::Replica& replica);           ///< before a checkpoint is written
  void restore(const parallel::Replica& replica) const;  ///< after the tensor was read back
  const at::Tensor& tensor() const { return tensor_; }

 private:
  at::Tensor tensor_;
};

}  // namespace syncopate::train
