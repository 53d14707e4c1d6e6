#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "syncopate/codec/codec.h"
#include "syncopate/data/loader.h"
#include "syncopate/library/choice.h"
#include "syncopate/library/world.h"
#include "syncopate/nn/example_noise.h"
#include "syncopate/nn/model.h"
#include "syncopate/optim/loss_scale.h"
#include "syncopate/optim/optimizer.h"
#include "syncopate/parallel/make.h"
#include "syncopate/parallel/settle.h"
#include "syncopate/parallel/step_runner.h"
#include "syncopate/tensor/precision.h"

namespace torch::nn {
class Module;
}
namespace syncopate::train {
struct Resumption;
}

namespace syncopate {

/// "ddp", parallel::StrategyOptions, or a strategy of one's own over `World::group`.
using StrategyChoice = Choice<parallel::StrategyOptions, std::shared_ptr<parallel::Strategy>>;
/// "int8", parallel::CompressionOptions, or what makes a codec of one's own.
using CodecChoice = Choice<parallel::CompressionOptions, std::function<std::unique_ptr<codec::Codec>()>>;
/// "adamw", optim::OptimizerOptions, or what makes an optimizer of one's own.
using OptimizerChoice = Choice<optim::OptimizerOptions,
                               std::function<std::unique_ptr<optim::Optimizer>(const tensor::FlatParams&)>>;

struct SessionOptions {
  StrategyChoice strategy = "ddp";
  CodecChoice codec = "none";
  OptimizerChoice optimizer = "adamw";
  double clip = 0;  ///< limit of the global gradient norm; 0: off
  std::variant<std::string, tensor::Precision> precision = "fp32";
  std::variant<std::string, c10::Device> device = "cpu";
  uint64_t seed = 0;  ///< of dropout
  /// Of batch norms, where every rank has statistics of its own: what the one model has.
  parallel::Buffers buffers = parallel::Buffers::kMean;
  int servers = 1;            ///< parameter-server: so many of the last ranks hold the model
  int64_t staleness = -1;     ///< parameter-server: how far workers may be apart; -1: any; 0: in lockstep
  bool allow_unused = false;  ///< parameters that get no gradient in the first step are no mistake
};

struct SessionParts;

/// Trains a model of one's own together with other ranks.
///
///     auto world = syncopate::join();
///     syncopate::Session session(model, world, {.strategy = "diloco", .codec = "int8", .clip = 1});
///     for (...) loss = session.step(batch, lr);
///     session.finish();
///     session.leave();
///
/// Collective where the strategy keeps in step: every rank makes the same calls. The parameters live in the
/// session's flat arrays from then on: nothing else may move them, or reset their gradients.
class Session {
 public:
  /// `model` and `world` must outlive it. Throws ConfigError, on every rank, for options or models that do
  /// not fit or are not alike on all ranks.
  Session(nn::Model& model, World& world, SessionOptions options = {});
  using LossFunction = std::function<tensor::Loss(const tensor::Batch&)>;
  /// A libtorch module as it is, with `loss` of a batch: its sum over the batch, and what it is a sum over.
  Session(std::shared_ptr<torch::nn::Module> module, LossFunction loss, World& world,
          SessionOptions options = {});
  /// Likewise; its owner computes the forward pass and hands the loss to `step`.
  Session(std::shared_ptr<torch::nn::Module> module, World& world, SessionOptions options = {});
  /// The same, joining by itself.
  explicit Session(std::shared_ptr<torch::nn::Module> module, SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return rank_; }
  int workers() const { return workers_; }  ///< servers not counted
  const parallel::Replica& replica() const;
  /// What its user should know, such as a precision that is not the one asked for.
  const std::vector<std::string>& notes() const { return notes_; }

  // Steps. Each returns the mean loss over all ranks since they last talked or, in a step in which they do
  // not talk, this rank's own (0 without examples). Throws DivergedError when it is not a number.

  /// On this rank's batch, which may be empty. Examples without ids are numbered as they come.
  double step(const tensor::Batch& batch, double lr) { return step({&batch, 1}, lr); }
  /// On several micro-batches, one after the other.
  double step(std::span<const tensor::Batch> micro, double lr);
  double step(const data::StepBatches& batches, double lr) { return step(batches.micro, lr); }
  /// The forward pass was made: `loss` is its sum over the examples, and their number.
  double step(const tensor::Loss& loss, double lr);
  /// The same of a mean, where every rank has as many examples.
  double step(const at::Tensor& mean_loss, double lr) { return step(tensor::Loss{mean_loss, 1}, lr); }

  /// Around a forward pass of one's own: computes in the session's precision, and the dropout of the examples
  /// is a function of their ids and the step, whoever computes them. Without ids it follows rank and step.
  class Forward {
   public:
    Forward(uint64_t noise_key, std::span<const int64_t> ids, tensor::Precision precision, c10::Device device)
        : noise_(noise_key, ids, device), autocast_(precision, device) {}

   private:
    nn::ExampleNoise noise_;
    tensor::Autocast autocast_;
  };
  Forward forward(std::span<const int64_t> ids) const;

  /// Hands out this rank's batch of a data set for the session's next step; a session that resumes goes on
  /// with the same global batches on any number of workers. Of `options` the session sets workers and rank.
  /// Must not outlive the session.
  class Batches {
   public:
    data::StepBatches next();

   private:
    friend class Session;
    Batches(Session& session, std::shared_ptr<const data::Dataset> dataset, data::LoaderOptions options);
    Session& session_;
    std::unique_ptr<data::Loader> loader_;
    int64_t position_ = 0;  ///< the step that the loader gives next
  };
  Batches batches(std::shared_ptr<const data::Dataset> dataset, data::LoaderOptions options);

  int64_t steps() const { return steps_; }  ///< made by this rank
  const parallel::StepResult& last() const { return last_; }

  /// Calls `use` while every replica is the one model that the ranks' work amounts to, then puts back what
  /// training goes on with. Collective.
  void with_model(const std::function<void()>& use);
  /// The end of training: every replica is the one model, buffers included. Collective.
  parallel::Settled finish();

  /// Parameters by name, optimizer, strategy: all that `resume` needs to go on as if never stopped,
  /// libtorch's random generators apart. Collective; rank 0 writes, in the place of an earlier one.
  void save(const std::filesystem::path& path);
  /// Goes on from there, on any number of workers, before the first step. Returns what the user should know:
  /// on another number of workers, what was dropped and what was kept. Collective; rank 0 reads. Throws
  /// DataError, on every rank, for a file that is damaged or of another model.
  std::vector<std::string> resume(const std::filesystem::path& path);

  /// This rank holds a part of the model for the workers: call `serve` instead of the above.
  bool serves() const { return serves_; }
  void serve();  ///< until the workers have left
  /// The last call: strategy and servers are told, and the world is left where the session joined it.
  void leave();

 private:
  void start(std::shared_ptr<nn::Model> model);
  SessionParts& parts() const;
  double make_step(std::span<const tensor::Batch> micro, double lr);
  void account();  ///< the last step's losses are those since ranks last talked, or are carried
  /// With ids where it has none; `number` of them are the step's already.
  tensor::Batch numbered(tensor::Batch batch, int64_t& number) const;
  nlohmann::ordered_json progress() const;
  void restore(const nlohmann::ordered_json& values, train::Resumption& how);
  // Where workers run free; open and close are collective.
  void open_section();
  void close_section();
  int64_t take_ticket();
  uint64_t noise_key() const;

  std::optional<World> own_world_;
  World& world_;
  SessionOptions options_;
  int rank_, workers_;
  bool has_loss_ = true;  ///< batches can be computed here
  bool serves_ = false;
  bool unusable_ = false;  ///< it could not resume, and holds half of a checkpoint
  std::vector<std::string> notes_;
  std::unique_ptr<SessionParts> parts_;  ///< null on servers
  parallel::StepResult last_;
  int64_t steps_ = 0;
  int64_t tickets_ = 0;            ///< taken by all before this section
  std::optional<int64_t> ticket_;  ///< taken for the step to come
  bool open_ = false;              ///< a section is
};

}  // namespace syncopate
