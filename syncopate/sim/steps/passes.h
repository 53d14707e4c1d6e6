#pragma once

#include <cstdint>

#include "syncopate/sim/steps/workers.h"

namespace syncopate::sim {

/// What every step has, whatever is exchanged: the passes over the micro-batches, also of a stage between the
/// messages that cross to the other stages, the sum of losses, and the update.
class Passes {
 public:
  Passes(Workers& workers, const StepsOf& what) : workers_(workers), what_(what) {}

  /// Before the first part of a step.
  void begin(int64_t step) { step_ = step; }
  /// Up to the last backward pass: micro-batches before the last run whole.
  void forward();
  /// A share of the last backward pass.
  void backward(double share);
  /// The rest of the backward pass, and the sleep behind it of a worker that is made slow: by then buckets
  /// are on their way.
  void end_backward(double share = 1);
  /// Starts the sum of losses, counts and wishes of a step, and of losses of so many steps before it that
  /// were not told yet; the operation to wait for.
  int totals(int64_t earlier = 0);
  void update();
  /// The update, and what a step costs beside.
  void finish();

 private:
  using Crossing = void (Crossings::*)(int64_t step, size_t stage, size_t replica, int actor, double slow);
  void cross(Crossing part);
  bool staged() const { return what_.crossings != nullptr; }
  double micro_batches() const;

  Workers& workers_;
  const StepsOf& what_;
  int64_t step_ = 0, last_begun_ = -1;
};

}  // namespace syncopate::sim
