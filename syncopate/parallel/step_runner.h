#pragma once

#include <functional>
#include <span>
#include <vector>

#include "syncopate/parallel/engine.h"
#include "syncopate/parallel/mesh.h"
#include "syncopate/parallel/strategy.h"
#include "syncopate/parallel/totals.h"

namespace syncopate::parallel {

/// What a caller wants to be told or to ask while a step is made.
struct StepHooks {
  std::function<void(const char* phase)> phase{};  ///< may be empty
  /// Asked once, in a step in which ranks talk: what should happen after it? May be empty.
  std::function<Wishes()> wishes{};
  /// This rank's losses in steps since ranks last talked: told with this step's if they talk in it. As many
  /// on every rank.
  std::span<const LocalLoss> earlier{};
};

struct StepResult {
  LocalLoss mine;                    ///< of this rank in this step
  double sum = 0, count = 0;         ///< of this step: over all ranks where they talked, else this rank's
  std::vector<TotalLoss> earlier{};  ///< over all ranks, of StepHooks::earlier, where they talked
  bool talked = false;
  Wishes wishes;  ///< of all ranks, where they talked
  double exchange_seconds = 0;
  Update update;
};

/// Makes optimizer steps: gradients by the engine, losses summed over ranks behind the backward pass, the
/// update by the strategy. Everything given must outlive it. Collective where the strategy is.
class StepRunner {
 public:
  StepRunner(Replica& replica, Engine& engine, Strategy& strategy, const Mesh& mesh)
      : replica_(replica), engine_(engine), strategy_(strategy), mesh_(mesh) {}

  struct Order {
    int64_t step = 0;  ///< its number, from 0
    double lr = 0;
    uint64_t noise_key = 0;  ///< decides every example's dropout: alike on all ranks
  };
  /// Throws DivergedError when the loss or the gradient is no number: on every rank where they talk, else on
  /// the rank that saw it.
  StepResult step(std::span<const tensor::Batch> micro, const Order& order, const StepHooks& hooks = {});

 private:
  Replica& replica_;
  Engine& engine_;
  Strategy& strategy_;
  Mesh mesh_;
  std::vector<tensor::RowUse> touched_{};  ///< where embedding tables' gradients differ from zero
};

}  // namespace syncopate::parallel
