#pragma once

#include <memory>
#include <optional>

#include "syncopate/comm/group.h"
#include "syncopate/nn/model.h"
#include "syncopate/optim/loss_scale.h"
#include "syncopate/optim/optimizer.h"
#include "syncopate/parallel/step.h"
#include "syncopate/parallel/trace.h"
#include "syncopate/tensor/flat_params.h"
#include "syncopate/tensor/precision.h"

namespace syncopate::parallel {

class SharedUpdate;

/// What one rank trains; the parts are owned by the caller (the Trainer). Valid for as long as they are.
struct Replica {
  nn::Model& model;
  tensor::FlatParams& params;
  optim::Optimizer& optimizer;
  double clip = 0;  ///< limit of the global gradient norm; 0: off
  tensor::Precision precision = tensor::Precision::kFp32;
  /// Multiplies the loss so that small gradients survive fp16, and is divided out again; null: not needed.
  optim::LossScale* loss_scale = nullptr;
  /// The ranks that hold the other parts of the model; null: it is whole here.
  comm::Group* stages = nullptr;
  /// The ranks keep the parameters and the optimizer's state together, once, and each updates a part; null:
  /// this rank has its own.
  std::shared_ptr<const SharedUpdate> shared{};
  Trace* trace = nullptr;  ///< where what happens is noted; null: nowhere

  /// Divides the gradient by the count, clips it and updates the parameters. With a loss scale, a gradient
  /// that overflowed is counted and skipped: every rank holds the same gradient, so all agree.
  Update apply(const StepContext& context) const;

  /// Before a forward pass: the copy of the parameters in half precision, where one is kept, is as they are.
  void refresh_half() const;

  // The parts of `apply`, for who updates elsewhere.

  /// The norm of the whole model's gradient, of which this rank's part has norm `mine`. Collective among
  /// `stages`.
  double whole_norm(double mine) const;
  double mean_scale(double count) const;  ///< what makes the gradient that of the mean loss
  /// The scaled gradient has this norm: whether to update with it, and what the loss scale learns from it.
  Update judge(double norm) const;
  /// What the gradient is multiplied by, clipped; nothing where the update is skipped.
  struct Scaled {
    Update update;
    std::optional<double> scale;
    double waited = 0;  ///< seconds in which other ranks' part of the norm was awaited
  };
  Scaled scaled(double count) const;
};

}  // namespace syncopate::parallel
