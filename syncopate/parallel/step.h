#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "syncopate/tensor/batch.h"

// What goes into an optimizer step and what comes out of it.
namespace syncopate::parallel {

/// What a strategy is told of a step.
struct StepContext {
  int64_t step = 0;  ///< its number, from 0
  double lr = 0;
  /// What the loss whose gradient is applied is a mean over: all ranks' examples of this step, or this rank's
  /// own where the strategy makes local updates.
  double count = 1;
  /// Rows of embedding tables that this rank's micro-batches of the step read; elsewhere the gradient of such
  /// a table is zero.
  std::span<const tensor::RowUse> rows{};
};

/// What became of it.
struct Update {
  double gradient_norm = 0;  ///< before clipping; 0 where nobody had to know it (it costs a pass)
  double apply_seconds = 0;  ///< spent updating, not exchanging
  bool skipped = false;      ///< the parameters are as they were: nothing to learn from, or not finite
  /// Rows of embedding tables in which the gradient differs from zero now, where that is not
  /// StepContext::rows (the exchange brought others'); of a table that is not listed: anywhere.
  std::optional<std::vector<tensor::RowUse>> touched{};
};

}  // namespace syncopate::parallel
