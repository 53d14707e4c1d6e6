#include "syncopate/library/session.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/library/session_parts.h"
#include "syncopate/nn/module_model.h"
#include "syncopate/parallel/server/shard_server.h"
#include "syncopate/run/device.h"
#include "syncopate/train/replica_parts.h"

namespace syncopate {

Session::Session(nn::Model& model, World& world, SessionOptions options)
    : world_(world), options_(std::move(options)), rank_(world_.rank()), workers_(world_.size()) {
  start(std::shared_ptr<nn::Model>(std::shared_ptr<nn::Model>(), &model));
}

Session::Session(std::shared_ptr<torch::nn::Module> module, LossFunction loss, World& world,
                 SessionOptions options)
    : world_(world),
      options_(std::move(options)),
      rank_(world_.rank()),
      workers_(world_.size()),
      has_loss_(loss != nullptr) {
  start(std::make_shared<nn::ModuleModel>(std::move(module), std::move(loss)));
}

Session::Session(std::shared_ptr<torch::nn::Module> module, World& world, SessionOptions options)
    : Session(std::move(module), LossFunction(), world, std::move(options)) {}

Session::Session(std::shared_ptr<torch::nn::Module> module, SessionOptions options)
    : own_world_(join()),
      world_(*own_world_),
      options_(std::move(options)),
      rank_(world_.rank()),
      workers_(world_.size()),
      has_loss_(false) {
  start(std::make_shared<nn::ModuleModel>(std::move(module)));
}

Session::~Session() = default;

const parallel::Replica& Session::replica() const { return parts().replica; }

SessionParts& Session::parts() const {
  if (unusable_) throw ConfigError("this session could not resume; make a new one");
  if (serves_) throw ConfigError("rank {} serves: call serve() there, and nothing else", rank_);
  if (!parts_) throw ConfigError("this session has been left; make a new one");
  return *parts_;
}

void Session::start(std::shared_ptr<nn::Model> model) {
  try {
    require_agreement(*model, options_, world_);
    const int servers = servers_of(options_);
    workers_ -= servers;
    serves_ = rank_ >= workers_;
    if (serves_) return;
    parts_ = std::make_unique<SessionParts>(std::move(model), world_, options_);
    if (!parts_->note.empty()) notes_.push_back(parts_->note);
    open_section();
  } catch (const CommError& error) {
    world_.rethrow(error);
  }
}

void Session::serve() {
  if (!serves_) throw ConfigError("rank {} trains: only the last servers of the ranks serve", rank_);
  world_.status(-1, "serving");
  try {
    parallel::serve(world_.group(), server_options(options_, workers_));
  } catch (const CommError& error) {
    world_.rethrow(error);
  }
}

uint64_t Session::noise_key() const {
  return mix_key(options_.seed, static_cast<uint64_t>(ticket_.value_or(steps_)));
}

Session::Forward Session::forward(std::span<const int64_t> ids) const {
  const parallel::Replica& replica = parts().replica;
  replica.model.set_mode({.training = true, .noise_key = noise_key()});
  const auto own = static_cast<int64_t>(mix_key(rank_, steps_) >> 1);
  return Forward(noise_key(), ids.empty() ? std::span(&own, 1) : ids, replica.precision,
                 replica.params.values.device());
}

tensor::Batch Session::numbered(tensor::Batch batch, int64_t& number) const {
  if (!batch.ids.empty()) return batch;
  int64_t size = 0;
  for (const auto& [name, field] : batch.fields) {
    if (field.dim() > 0) size = std::max(size, field.size(0));
  }
  for (int64_t i = 0; i < size; ++i)
    batch.ids.push_back(static_cast<int64_t>(mix_key(rank_, steps_, number++) >> 1));
  return batch;
}

double Session::step(std::span<const tensor::Batch> micro, double lr) {
  if (!has_loss_) {
    throw ConfigError(
        "this session's module came without a loss function: give one, or hand the loss itself to step()");
  }
  std::vector<tensor::Batch> full;
  int64_t number = 0;
  for (const tensor::Batch& batch : micro) {
    tensor::Batch whole = numbered(batch, number);
    if (whole.size() > 0 || parts().replica.model.every_rank_computes()) full.push_back(std::move(whole));
  }
  return make_step(full, lr);
}

double Session::step(const tensor::Loss& loss, double lr) {
  require_loss(loss);
  parts().engine.give(loss);
  return make_step({}, lr);
}

double Session::make_step(std::span<const tensor::Batch> micro, double lr) {
  SessionParts& p = parts();
  const SessionEngine::Offer offer(p.engine);           // a loss that was given is for this step alone
  run::make_current(p.replica.params.values.device());  // of this thread, which may be another one
  if (const auto stray = p.params.strayed()) {
    throw ConfigError(
        "the parameter {} or its gradient was moved since the session began; leave zero_grad() and to() to "
        "the session",
        *stray);
  }
  try {
    open_section();  // there is none after finish()
    if (p.free != nullptr && !ticket_) take_ticket();
    world_.status(steps_ + 1, "step");
    std::optional<GradientWatch> watch;
    if (!p.gradients_checked) watch.emplace(p.params);
    last_ = p.runner.step(micro, {.step = ticket_.value_or(steps_), .lr = lr, .noise_key = noise_key()},
                          {.earlier = p.carried});
    account();
    ticket_.reset();
    ++steps_;
    if (watch)
      p.gradients_checked =
          watch->require(last_.mine.count, options_.allow_unused, p.free != nullptr ? nullptr : &p.workers);
  } catch (const CommError& error) {
    world_.rethrow(error);
  }
  return last_.count > 0 ? last_.sum / last_.count : 0;
}

void Session::account() {
  std::vector<parallel::LocalLoss>& carried = parts().carried;
  if (!last_.talked) {
    carried.resize(1);
    carried[0].sum += last_.mine.sum;
    carried[0].count += last_.mine.count;
    return;
  }
  for (const parallel::TotalLoss& loss : last_.earlier) {
    last_.sum += loss.sum;
    last_.count += loss.count;
  }
  carried.clear();
}

int64_t Session::take_ticket() {
  ticket_ = parts().free->take(false);
  check(ticket_.has_value(), "a section without an end has a ticket");
  return *ticket_;
}

void Session::open_section() {
  SessionParts& p = parts();
  if (p.free == nullptr || open_) return;
  p.free->open(p.replica, tickets_, std::numeric_limits<int64_t>::max() / 2);
  open_ = true;
}

void Session::close_section() {
  SessionParts& p = parts();
  if (!open_) return;
  ticket_.reset();  // what was taken and not used is left out
  tickets_ += p.free->close(p.replica);
  open_ = false;
}

void Session::with_model(const std::function<void()>& use) {
  SessionParts& p = parts();
  /// The module evaluates while one lives, also when `use` throws.
  struct Evaluating {
    explicit Evaluating(nn::Model& of) : model(of) { model.set_mode({.training = false}); }
    ~Evaluating() { model.set_mode({.training = true}); }
    nn::Model& model;
  };
  try {
    close_section();
    {
      const parallel::AsSettled settled(*p.strategy, p.replica, p.workers, options_.buffers);
      const Evaluating mode(p.replica.model);
      use();
    }
    open_section();
  } catch (const CommError& error) {
    world_.rethrow(error);
  }
}

parallel::Settled Session::finish() {
  try {
    close_section();
    return parts().settle(options_.buffers);
  } catch (const CommError& error) {
    world_.rethrow(error);
  }
}

void Session::save(const std::filesystem::path& path) {
  SessionParts& p = parts();
  train::ReplicaParts replica(p.trained(options_.buffers));
  SessionPart own(p.carried, [&] { return progress(); }, {});
  try {
    const bool was_open = open_;
    close_section();
    train::save_checkpoint(path, p.workers, replica.and_then(own));
    if (was_open) open_section();
  } catch (const CommError& error) {
    world_.rethrow(error);
  }
}

std::vector<std::string> Session::resume(const std::filesystem::path& path) {
  SessionParts& p = parts();
  if (steps_ > 0) throw ConfigError("a session resumes before its first step, not after {}", steps_);
  train::ReplicaParts replica(p.trained(options_.buffers));
  SessionPart own(p.carried, {}, [&](const nlohmann::ordered_json& values, train::Resumption& how) {
    restore(values, how);
  });
  own.expect(named_options(options_));
  try {
    close_section();
    const auto how = train::restore_checkpoint(path, p.workers, replica.and_then(own));
    open_section();
    return how.notes;
  } catch (const CommError& error) {
    world_.rethrow(error);
  } catch (...) {
    unusable_ = true;
    throw;
  }
}

nlohmann::ordered_json Session::progress() const {
  nlohmann::ordered_json values = named_options(options_);
  values["steps"] = steps_;
  values["updates"] = tickets_;
  return values;
}

void Session::restore(const nlohmann::ordered_json& values, train::Resumption& how) {
  steps_ = values.at("steps");
  tickets_ = values.at("updates");
  if (how.resized()) how.note(fmt::format("workers were {} and are {} now", how.ranks_before, how.ranks_now));
  if (parts().free == nullptr) return;
  steps_ = tickets_ / how.ranks_before;  // a step is an update of each worker
  if (how.resized()) tickets_ = steps_ * how.ranks_now;
}

void Session::leave() {
  try {
    if (parts_) {
      unusable_ = false;  // to leave, it will do
      close_section();
      parts_->strategy->leave();
      parts_.reset();  // its group goes with the world
    }
    if (own_world_) own_world_->leave();
  } catch (const CommError& error) {
    world_.rethrow(error);
  }
}

data::StepBatches Session::Batches::next() {
  if (session_.parts().free != nullptr) {
    session_.open_section();
    loader_->request(session_.take_ticket());
  } else if (position_ != session_.steps()) {  // it has resumed, or the last batch was not used
    loader_->seek(session_.steps());
    position_ = session_.steps();
  }
  ++position_;
  return loader_->next();
}

Session::Batches::Batches(Session& session, std::shared_ptr<const data::Dataset> dataset,
                          data::LoaderOptions options)
    : session_(session) {
  const bool free = session.parts().free != nullptr;  // then every batch is one worker's, whoever takes it
  if (free) {
    if (options.global_batch % session.workers() != 0) {
      throw ConfigError("global_batch must be a multiple of the {} workers, which share it, got {}",
                        session.workers(), options.global_batch);
    }
    options.global_batch /= session.workers();
  }
  options.workers = free ? 1 : session.workers();
  options.rank = free ? 0 : session.rank();
  options.on_demand = free;
  options.keep_empty = session.parts().replica.model.every_rank_computes();
  loader_ = std::make_unique<data::Loader>(std::move(dataset), options);
}

Session::Batches Session::batches(std::shared_ptr<const data::Dataset> dataset, data::LoaderOptions options) {
  return {*this, std::move(dataset), std::move(options)};
}

}  // namespace syncopate
