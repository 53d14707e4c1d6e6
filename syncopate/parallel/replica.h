#pragma once

#include <optional>
#include <vector>

#include "syncopate/nn/model.h"
#include "syncopate/optim/loss_scale.h"
#include "syncopate/optim/optimizer.h"
#include "syncopate/tensor/flat_params.h"
#include "syncopate/tensor/precision.h"

namespace syncopate::parallel {

/// What one rank trains; the parts are owned by the caller (the Trainer). Valid for as long as they are.
struct Replica {
  nn::Model& model;
  tensor::FlatParams& params;
  optim::Optimizer& optimizer;
  double clip = 0;  ///< limit of the global gradient norm; 0: off
  tensor::Precision precision = tensor::Precision::kFp32;
  /// Multiplies the loss so that small gradients survive fp16, and is divided out again; null: not needed.
  optim::LossScale* loss_scale = nullptr;

  int64_t step = 0;  ///< the number of this step, from 0
  double lr = 0;     ///< of this step
  /// What the loss whose gradient is applied is a mean over: all ranks' examples of this step, or this
  /// rank's own where the strategy makes local updates.
  double count = 1;
  /// Rows of embedding tables that this rank's micro-batches of the step read.
  std::vector<tensor::RowUse> rows{};
  double gradient_norm =
      0;  ///< of the last update, before clipping; 0 when clipping is off (it costs a pass)
  double apply_seconds = 0;  ///< spent in `apply` since it was last set to 0

  /// Divides by the count, clips, updates the parameters. With a loss scale, a gradient that overflowed is
  /// counted and left out: every rank holds the same gradient, so all agree.
  void apply();

  // The steps of `apply`, for who updates elsewhere.
  double mean_scale() const;             ///< what makes the gradient that of the mean loss
  bool accept(double norm);              ///< the scaled gradient has this norm: whether to update with it
  std::optional<double> update_scale();  ///< what the gradient counts times, clipped; nothing: no update
};

}  // namespace syncopate::parallel
