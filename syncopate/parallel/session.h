#pragma once

#include <memory>
#include <span>
#include <string>

#include "syncopate/comm/group.h"
#include "syncopate/nn/model.h"
#include "syncopate/optim/optimizer.h"
#include "syncopate/parallel/engines/local_engine.h"
#include "syncopate/parallel/replica.h"
#include "syncopate/parallel/step_runner.h"
#include "syncopate/parallel/strategy.h"

namespace syncopate::parallel {

/// The shortest way to train a model of one's own with other ranks: holds what a replica needs and makes
/// steps.
///
///     Session session(model, group, strategy);
///     for (...) mean_loss = session.step(batches, lr);
///
/// Everything given must outlive the session. Collective: every rank makes the same calls.
class Session {
 public:
  Session(nn::Model& model, comm::Group& group, Strategy& strategy,
          const optim::OptimizerOptions& options = {});

  /// One optimizer step on this rank's micro-batches (they may be none); returns the mean loss over all ranks
  /// since they last talked, or this rank's own (0 without examples) in a step in which they do not.
  double step(std::span<const tensor::Batch> micro, double lr);
  void finish() { strategy_.settle(replica_); }     ///< every replica is the model then
  const StepResult& last() const { return last_; }  ///< of the last step
  const Replica& replica() const { return replica_; }

 private:
  comm::Group& group_;
  Strategy& strategy_;
  tensor::FlatParams params_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Replica replica_;
  LocalEngine engine_;
  StepRunner runner_;
  StepResult last_;
  uint64_t steps_ = 0;
};

}  // namespace syncopate::parallel
