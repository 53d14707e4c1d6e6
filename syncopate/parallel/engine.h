#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "syncopate/parallel/replica.h"

namespace syncopate::parallel {

/// This rank's part of a step's loss.
struct LocalLoss {
  double sum = 0;
  int64_t count = 0;
};

/// What the engine tells its caller while it works; each may be empty.
struct EngineEvents {
  std::function<void(const char* phase)> phase;  ///< "forward", "backward"
  /// The forward pass of a micro-batch is done, its backward pass comes next. Called once with `last` in
  /// every step.
  std::function<void(const LocalLoss& so_far, bool last)> before_backward;
};

/// How this step's gradients come to be.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Leaves in `replica.params.grads` the gradient of the sum of the losses of all micro-batches, and in
  /// `replica.rows` the rows they read. `noise_key` decides the dropout. No micro-batch at all gives zero
  /// gradients.
  virtual LocalLoss run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                        const EngineEvents& events) = 0;
};

}  // namespace syncopate::parallel
