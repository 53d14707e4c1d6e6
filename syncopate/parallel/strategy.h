#pragma once

#include "syncopate/comm/group.h"
#include "syncopate/parallel/replica.h"

namespace syncopate::parallel {

/// Decides what replicas tell each other, and when. One per rank; every rank makes the same calls.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Before the first step: all take rank 0's parameters.
  virtual void start(Replica& replica) = 0;
  /// The forward pass of a micro-batch is done and its backward pass comes next. Called once with
  /// `last_micro` in every step, also on a rank that has no examples in it.
  virtual void before_backward(Replica&, bool /*last_micro*/) {}
  /// Gradients (of the local sum) are in place and `replica.count` is known; leaves new parameters.
  virtual void step(Replica& replica) = 0;
  /// After the last step: makes replicas equal.
  virtual void finish(Replica&) {}
};

/// Every rank takes rank 0's parameters.
void take_parameters_of_rank_zero(Replica& replica, comm::Group& group);

}  // namespace syncopate::parallel
