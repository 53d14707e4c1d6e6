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
  /// What was given goes with it.
  class Offer {
   public:
    explicit Offer(SessionEngine& engine) : engine_(engine) {}
    ~Offer() { engine_.given_.reset(); }
    Offer(const Offer&) = delete;
    Offer& operator=(const Offer&) = delete;

   private:
    SessionEngine& engine_;
  };
  parallel::Gradients run(parallel::Replica& replica, std::span<const tensor::Batch> micro,
                          uint64_t noise_key, const parallel::EngineEvents& events) override;

 private:
  parallel::LocalEngine local_;
  std::optional<tensor::Loss> given_;
};

/// What a checkpoint holds of the session itself.
class SessionPart : public train::ValuesPart {
 public:
  SessionPart(std::vector<parallel::LocalLoss>& carried, Save save, Restore restore)
      : ValuesPart("session", std::move(save), std::move(restore)), carried_(carried) {}
  void expect(nlohmann::ordered_json options) { expected_ = std::move(options); }  ///< when resuming
  std::vector<parallel::StateTensor> to_save() override;
  void require(const nlohmann::ordered_json& values) override;
  void restored(const nlohmann::ordered_json& values, train::Resumption& how) override;

 private:
  std::vector<parallel::LocalLoss>& carried_;  ///< SessionParts::carried
  nlohmann::ordered_json expected_;
  at::Tensor saved_;  ///< double [2]: its sum and count
};

/// Sees which parameters get a gradient, while it lives.
class GradientWatch {
 public:
  explicit GradientWatch(const tensor::FlatParams& params);
  ~GradientWatch();
  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;

  /// After a step on `count` examples of this rank: whether there were any to tell from. Throws ConfigError
  /// when a parameter got none. With `group`, that is one verdict of all ranks; collective.
  bool require(int64_t count, bool allow_unused, comm::Group* group) const;

 private:
  const tensor::FlatParams& params_;
  std::vector<unsigned> hooks_;                    ///< by parameter
  std::shared_ptr<std::vector<int64_t>> touched_;  ///< likewise
};

/// What exists on workers alone.
struct SessionParts {
  /// Of a model and options that all agreed upon. Collective over the workers.
  SessionParts(std::shared_ptr<nn::Model> of, World& world, const SessionOptions& options);
  SessionParts(const SessionParts&) = delete;
  SessionParts& operator=(const SessionParts&) = delete;

  parallel::Settled settle(parallel::Buffers buffers) {
    return parallel::settle(*strategy, replica, workers, buffers);
  }
  train::Trained trained(parallel::Buffers buffers) { return {replica, *strategy, workers, buffers}; }

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
  /// This rank's losses since ranks last talked, in one sum; empty: none.
  std::vector<parallel::LocalLoss> carried;
  bool gradients_checked = false;
  std::string note;  ///< for the user; may be empty
};

/// First of all: whether all ranks, servers too, have the same options and models, and what can be trained;
/// then workers exchange what is on their devices. Collective. Throws ConfigError on every rank.
void require_agreement(const nn::Model& model, const SessionOptions& options, World& world);

int servers_of(const SessionOptions& options);
parallel::ShardServerOptions server_options(const SessionOptions& options, int workers);
/// What is known by name and decides what a checkpoint holds.
nlohmann::ordered_json named_options(const SessionOptions& options);
/// Throws ConfigError for one that no gradient can come from.
void require_loss(const tensor::Loss& loss);

}  // namespace syncopate
