#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "syncopate/nn/model.h"
#include "syncopate/parallel/replica.h"
#include "syncopate/tensor/precision.h"

namespace syncopate::parallel {

/// This rank's part of a step's loss.
struct LocalLoss {
  double sum = 0;
  int64_t count = 0;
  /// What the loss of this rank's replica counts, also on a rank whose stage of it has no loss: there `sum`
  /// and `count` are 0.
  int64_t of_replica = 0;
};

/// What the engine tells its caller while it works; each may be empty.
struct EngineEvents {
  std::function<void(const char* phase)> phase;  ///< "forward", "backward"
  /// The forward pass of a micro-batch is done, its backward pass comes next. Called once with `last` in
  /// every step. `rows`: those of embedding tables that the step's micro-batches read.
  std::function<void(const LocalLoss& so_far, std::span<const tensor::RowUse> rows, bool last)>
      before_backward;
};

/// What the engine made of a step's micro-batches, beside the gradient.
struct Gradients {
  LocalLoss loss;
  std::vector<tensor::RowUse> rows;  ///< of embedding tables: what the micro-batches read
};

/// How this step's gradients come to be.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Adds to `replica.params.grads`, which is zero, the gradient of the sum of the losses of all
  /// micro-batches; no micro-batch at all adds nothing. `noise_key` decides every example's dropout.
  virtual Gradients run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                        const EngineEvents& events) = 0;

  /// Makes batches number 0 to `batches` - 1 with `batch`, and hands the model's output for each to `use`, in
  /// order: dropout is off, there are no gradients, and both are on the model's device. Of a model in stages
  /// the last stage alone has outputs. Collective among the stages of a replica.
  using MakeBatch = std::function<tensor::Batch(int64_t number)>;
  using UseOutput = std::function<void(const at::Tensor& output, const tensor::Batch& batch)>;
  virtual void infer(nn::Model& model, tensor::Precision precision, int64_t batches, const MakeBatch& batch,
                     const UseOutput& use);

  /// Whether `infer` compresses what travels between stages from now on, as training does; where nothing is
  /// compressed, that changes nothing.
  virtual void code_inferences(bool /*coded*/) {}

  // What a run that resumes must find again beside the replica, too large for its checkpoint: in files of
  // this rank, each beginning with `stem`.
  virtual bool keeps_state() const { return false; }
  virtual void save_state(const std::filesystem::path& /*stem*/) {}  ///< throws DataError
  /// Throws DataError where it is not what `save_state` wrote; then, or where another rank's is not, all
  /// forget.
  virtual void load_state(const std::filesystem::path& /*stem*/) {}
  virtual void forget_state() {}
};

}  // namespace syncopate::parallel
