#pragma once

#include <string>
#include <vector>

#include "syncopate/parallel/settle.h"
#include "syncopate/parallel/strategy.h"
#include "syncopate/train/checkpoint_parts.h"

// What a checkpoint holds of a replica and its strategy.
namespace syncopate::train {

/// What the parts belong to; all of it must outlive them. `group`: the ranks that hold replicas.
struct Trained {
  parallel::Replica& replica;
  parallel::Strategy& strategy;
  comm::Group& group;
  parallel::Buffers buffers = parallel::Buffers::kMean;  ///< where ranks' may differ
  bool staged = false;                                   ///< replicas hold a part of the model
};

/// "model.PARAMETER", "buffer.NAME" and "constant.NAME": the one model that would be evaluated. Where
/// replicas differ each rank's own are beside it. Saving leaves training as it was.
class ModelPart : public CheckpointPart {
 public:
  explicit ModelPart(const Trained& trained) : trained_(trained) {}
  std::string name() const override { return "model"; }
  std::vector<parallel::StateTensor> to_save() override;
  std::vector<parallel::StateTensor> to_restore() override;
  void restored(const nlohmann::ordered_json& values, Resumption& how) override;

 private:
  bool parameters_differ() const;
  bool buffers_differ() const;
  std::vector<parallel::StateTensor> common() const;  ///< the replica's tensors, as everybody's
  std::vector<parallel::StateTensor> own() const;     ///< those in which replicas differ

  Trained trained_;
};

/// "optimizer.NAME.PARAMETER" and how many steps it has made.
class OptimizerPart : public CheckpointPart {
 public:
  explicit OptimizerPart(const Trained& trained);
  std::string name() const override { return "optimizer"; }
  std::vector<parallel::StateTensor> to_save() override;
  nlohmann::ordered_json values() override;
  void restored(const nlohmann::ordered_json& values, Resumption& how) override;

 private:
  Trained trained_;
  at::Tensor steps_;  ///< int64 [1]: of this rank, where ranks count apart
};

/// How the loss is scaled, where it is.
class LossScalePart : public CheckpointPart {
 public:
  explicit LossScalePart(const Trained& trained);
  std::string name() const override { return "loss_scale"; }
  std::vector<parallel::StateTensor> to_save() override;
  nlohmann::ordered_json values() override;
  void restored(const nlohmann::ordered_json& values, Resumption& how) override;

 private:
  Trained trained_;
  at::Tensor state_;  ///< double [3]: of this rank, where ranks count apart
};

/// "strategy.NAME", by parameter where it is laid out so.
class StrategyPart : public CheckpointPart {
 public:
  explicit StrategyPart(const Trained& trained) : trained_(trained) {}
  std::string name() const override { return "strategy"; }
  std::vector<parallel::StateTensor> to_save() override;
  void restored(const nlohmann::ordered_json& values, Resumption& how) override;

 private:
  Trained trained_;
};

/// All of them, in the order in which they must be restored.
class ReplicaParts {
 public:
  explicit ReplicaParts(const Trained& trained)
      : model_(trained), optimizer_(trained), loss_scale_(trained), strategy_(trained) {}
  ReplicaParts(const ReplicaParts&) = delete;  // what it gives points into it
  ReplicaParts& operator=(const ReplicaParts&) = delete;

  /// With the caller's own behind them.
  std::vector<CheckpointPart*> and_then(CheckpointPart& own) {
    return {&model_, &optimizer_, &loss_scale_, &strategy_, &own};
  }

 private:
  ModelPart model_;
  OptimizerPart optimizer_;
  LossScalePart loss_scale_;
  StrategyPart strategy_;
};

}  // namespace syncopate::train
