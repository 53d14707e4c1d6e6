#pragma once

#include <vector>

#include "syncopate/nn/model.h"

namespace syncopate::nn {

/// Some layers of a model as a model of their own: a pipeline stage. Layer i of it is layer
/// `layers().first + i` of the whole, which must outlive it and whose mode it sets.
class StageModel final : public Model {
 public:
  /// Stages meet where `empty_hidden` says what passes: `layers` may not begin at the whole model's last
  /// layer, nor end just before it.
  StageModel(Model& whole, LayerRange layers);

  LayerRange layers() const { return layers_; }  ///< of the whole
  Model& whole() { return whole_; }
  bool first() const { return layers_.first == 0; }  ///< has layer 0
  bool last() const { return layers_.last == whole_.depth(); }

  /// Parameters of layer 0 that this stage reads without having it (`tied()` of the whole, where it has the
  /// last layer and not the first). Leaves, not among `parameters()`: their values come from the stage that
  /// has them, and their gradients must be added to that stage's.
  std::vector<tensor::NamedTensor> borrowed() const;
  /// Lets go of the memory of the whole model's parameters, gradients and buffers that are neither in this
  /// range nor borrowed: they become empty tensors. Only this stage can be computed from then on. (Memory
  /// that FlatParams of the whole model holds stays with it.)
  void release_others();

  using Model::buffers;
  using Model::forward;
  using Model::parameters;
  std::vector<tensor::NamedTensor> parameters(LayerRange layers) const override;
  std::vector<tensor::NamedTensor> buffers(LayerRange layers) const override;
  std::vector<tensor::NamedTensor> constants() const override { return whole_.constants(); }
  std::vector<tensor::NamedTensor> tied() const override;  ///< none unless it has both ends
  void stand_in_for_tied(std::vector<at::Tensor> tensors) override;
  void set_mode(Mode mode) override { whole_.set_mode(mode); }
  int depth() const override { return layers_.last - layers_.first; }
  /// The first layer takes what the stage before gives, unless it is layer 0 of the whole.
  at::Tensor forward(at::Tensor hidden, const Batch& batch, LayerRange layers) override;
  Loss loss(const at::Tensor& output, const Batch& batch) const override;  ///< of the last stage
  bool has_loss() const override { return last(); }
  at::Tensor empty_hidden(const Batch& batch, int layer) const override;
  int64_t count(const Batch& batch) const override { return whole_.count(batch); }  ///< any stage can tell
  std::vector<at::Tensor> row_tables() const override;                              ///< in the range
  std::vector<tensor::RowUse> rows_used(const Batch& batch) const override;
  bool own_products() const override { return whole_.own_products(); }
  bool every_rank_computes() const override { return whole_.every_rank_computes(); }

 private:
  LayerRange of_whole(LayerRange layers) const;
  bool owns(const at::Tensor& tensor) const;

  Model& whole_;
  LayerRange layers_;
};

}  // namespace syncopate::nn
