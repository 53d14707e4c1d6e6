#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/library/session.h"
#include "syncopate/parallel/engines/local_engine.h"
#include "syncopate/parallel/server/shard_server.h"
#include "syncopate/train/replica_parts.h"

// What a Session is made of. Not for its users.
namespace syncopate {

/// Computes on batches, or takes a loss whose forward pass was made already.
class SessionEngine : public parallel::Engine {
 public:
  void give(const tensor::Loss& loss) { given_ = loss; }  ///< for the next step
  parallel::Gradients run(parallel::Replica& replica, std::span<const tensor::Batch> micro,
                          uint64_t noise_key, const parallel::EngineEvents& events) override;

 private:
  parallel::LocalEngine local_;
  std::optional<tensor::Loss> given_;
};

/// What a checkpoint holds of the session itself.
class SessionPart : public train::ValuesPart {
 public:
  SessionPart(parallel::StepRunner& runner, Save save, Restore restore)
      : ValuesPart("session", std::move(save), std::move(restore)), runner_(runner) {}
  std::vector<parallel::StateTensor> to_save() override;
  void restored(const nlohmann::ordered_json& values, train::Resumption& how) override;

 private:
  parallel::StepRunner& runner_;
  at::Tensor carried_;  ///< double [2]: sum and count of this rank's losses that others do not know yet
};

/// What exists on workers alone.
struct SessionParts {
  /// Collective over the workers. Throws ConfigError on all of them.
  SessionParts(std::shared_ptr<nn::Model> of, World& world, const SessionOptions& options);
  SessionParts(const SessionParts&) = delete;
  SessionParts& operator=(const SessionParts&) = delete;

  parallel::Settled settle(parallel::Buffers buffers) {
    return parallel::settle(*strategy, replica, workers, buffers);
  }
  train::Trained trained(parallel::Buffers buffers) { return {replica, *strategy, workers, buffers}; }
  void watch_gradients();  ///< of the step to come
  /// Throws ConfigError, on every rank, when a parameter got none in it; waits for a step in which some rank
  /// has examples. Collective.
  void require_gradients(bool allow_unused);

  std::shared_ptr<nn::Model> model;
  std::unique_ptr<comm::Metered> part;  ///< of the world: the workers, where there are servers
  comm::Metered& workers;
  tensor::FlatParams params;
  std::unique_ptr<optim::Optimizer> optimizer;
  optim::LossScale loss_scale;
  parallel::Replica replica;
  SessionEngine engine;
  parallel::FreeRunning* free = nullptr;  ///< the strategy, where workers do not keep in step
  std::shared_ptr<parallel::Strategy> strategy;
  parallel::StepRunner runner;
  bool checked_gradients = false;

 private:
  std::vector<unsigned> hooks_;                    ///< by parameter
  std::shared_ptr<std::vector<int64_t>> touched_;  ///< by parameter
};

int servers_of(const SessionOptions& options);
parallel::ShardServerOptions server_options(const SessionOptions& options, int workers);
/// What is known by name and decides what a checkpoint holds.
nlohmann::ordered_json named_options(const SessionOptions& options);
/// Throws ConfigError for one that no gradient can come from.
void require_loss(const tensor::Loss& loss);

}  // namespace syncopate
