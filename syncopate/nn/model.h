#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/tensor/batch.h"

namespace syncopate::nn {

using tensor::Batch;
using tensor::Loss;

/// Layers first..last-1 of a model.
struct LayerRange {
  int first = 0;
  int last = 0;
};

/// Whether dropout is on, and the key its noise is drawn from: the same key gives an example (Batch::ids) the
/// same noise, whatever else is in its batch.
struct Mode {
  bool training = false;
  uint64_t noise_key = 0;
};

/// A model is a list of layers and a loss; a pipeline stage is a slice of the list. It does not know that it
/// is distributed. Not thread-safe.
class Model {
 public:
  virtual ~Model() = default;

  /// Leaf tensors that require a gradient, in the order the forward pass first uses them, each once.
  virtual std::vector<tensor::NamedTensor> parameters() const = 0;
  /// State that training changes otherwise than by gradients: a batch norm's statistics. Saved.
  virtual std::vector<tensor::NamedTensor> buffers() const { return {}; }
  /// What does not change in training, alike on all ranks: frozen parameters. Saved.
  virtual std::vector<tensor::NamedTensor> constants() const { return {}; }

  virtual void set_mode(Mode mode) = 0;
  virtual int depth() const = 0;
  /// Layer 0 ignores `hidden` and reads the batch; after the last layer the result is what `loss` takes.
  virtual at::Tensor forward(at::Tensor hidden, const Batch& batch, LayerRange layers) = 0;
  virtual Loss loss(const at::Tensor& output, const Batch& batch) const = 0;

  /// Embedding tables whose gradient touches only the rows that a batch reads; others have a dense gradient.
  virtual std::vector<at::Tensor> row_tables() const { return {}; }
  /// The rows of those tables that `batch` reads.
  virtual std::vector<tensor::RowUse> rows_used(const Batch&) const { return {}; }

  /// The forward pass talks to other ranks: every rank must run it and the backward pass, on an empty batch
  /// too.
  virtual bool every_rank_computes() const { return false; }

  at::Tensor forward(const Batch& batch) { return forward({}, batch, {0, depth()}); }
};

}  // namespace syncopate::nn
