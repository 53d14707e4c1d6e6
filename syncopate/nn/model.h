#pragma once

#include <algorithm>
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

  bool has(int layer) const { return first <= layer && layer < last; }
};

/// Whether dropout is on, and the key its noise is drawn from: the same key gives an example (Batch::ids) the
/// same noise, whatever else is in its batch.
struct Mode {
  bool training = false;
  uint64_t noise_key = 0;
  /// A forward pass that was made before and is made once more, to be differentiated: it leaves the running
  /// statistics of batch norms alone.
  bool again = false;
};

/// A model is a list of layers and a loss; a pipeline stage is a slice of the list (stage_model.h). It does
/// not know that it is distributed. Not thread-safe.
class Model {
 public:
  virtual ~Model() = default;

  /// Leaf tensors of these layers that require a gradient, in the order the forward pass first uses them. A
  /// parameter belongs to the first layer that uses it: ranges that do not overlap never share one.
  virtual std::vector<tensor::NamedTensor> parameters(LayerRange layers) const = 0;
  std::vector<tensor::NamedTensor> parameters() const { return parameters({0, depth()}); }
  /// State that training changes otherwise than by gradients: a batch norm's statistics. Saved.
  virtual std::vector<tensor::NamedTensor> buffers(LayerRange) const { return {}; }
  std::vector<tensor::NamedTensor> buffers() const { return buffers({0, depth()}); }
  /// What does not change in training, alike on all ranks: frozen parameters. Saved.
  virtual std::vector<tensor::NamedTensor> constants() const { return {}; }

  /// Parameters of layer 0 that the last layer or the loss reads, too: the word table of a tied decoder.
  virtual std::vector<tensor::NamedTensor> tied() const { return {}; }
  /// From now on the last layer and the loss read these in place of `tied()`, one for each of them; none: the
  /// parameters themselves again. So each use can have a gradient of its own.
  virtual void stand_in_for_tied(std::vector<at::Tensor>) {}

  virtual void set_mode(Mode mode) = 0;
  virtual int depth() const = 0;
  /// Into how many stages it can be cut at most: layer 0 goes with the first block, the last layer with the
  /// last one. A model of one or two layers is one block.
  int blocks() const { return std::max(1, depth() - 2); }
  /// Layer 0 ignores `hidden` and reads the batch; after the last layer the result is what `loss` takes.
  virtual at::Tensor forward(at::Tensor hidden, const Batch& batch, LayerRange layers) = 0;
  virtual Loss loss(const at::Tensor& output, const Batch& batch) const = 0;
  /// False for a part of a model without its last layer: `loss` may not be called.
  virtual bool has_loss() const { return true; }

  // What stages must know without computing. Models of more than one block implement them.

  /// What enters `layer` (1 .. depth() - 2) for this batch, as an empty fp32 tensor of that shape and memory
  /// format, where the batch is.
  virtual at::Tensor empty_hidden(const Batch& batch, int layer) const;
  /// What `loss` will count on this batch.
  virtual int64_t count(const Batch& batch) const;

  /// The same batch in one of a few shapes, so that what a GPU recorded for one serves others: padded where
  /// that changes neither loss nor gradients. The batch is on the host.
  virtual Batch in_common_shape(Batch batch) const { return batch; }

  /// Embedding tables whose gradient touches only the rows that a batch reads; others have a dense gradient.
  virtual std::vector<at::Tensor> row_tables() const { return {}; }
  /// The rows of those tables that `batch` reads.
  virtual std::vector<tensor::RowUse> rows_used(const Batch&) const { return {}; }

  /// Its large products are those of layers/product.h: on a CPU they can be in bf16 whatever libtorch does.
  virtual bool own_products() const { return false; }

  /// The forward pass talks to other ranks: every rank must run it and the backward pass, on an empty batch
  /// too.
  virtual bool every_rank_computes() const { return false; }

  at::Tensor forward(const Batch& batch) { return forward({}, batch, {0, depth()}); }
};

}  // namespace syncopate::nn
