#include "syncopate/library/session.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/library/agree.h"
#include "syncopate/library/session_parts.h"
#include "syncopate/nn/module_model.h"
#include "syncopate/parallel/server/shard_server.h"
#include "syncopate/train/replica_parts.h"

namespace syncopate {

Session::Session(nn::Model& model, World& world, SessionOptions options)
    : world_(world), options_(std::move(options)) {
  start(std::shared_ptr<nn::Model>(std::shared_ptr<nn::Model>(), &model));
}

Session::Session(std::shared_ptr<torch::nn::Module> module, LossFunction loss, World& world,
                 SessionOptions options)
    : world_(world), options_(std::move(options)) {
  start(std::make_shared<nn::ModuleModel>(std::move(module), std::move(loss)));
}

Session::Session(std::shared_ptr<torch::nn::Module> module, World& world, SessionOptions options)
    : Session(std::move(module), LossFunction(), world, std::move(options)) {}

Session::Session(std::shared_ptr<torch::nn::Module> module, SessionOptions options)
    : own_world_(join()), world_(*own_world_), options_(std::move(options)) {
  start(std::make_shared<nn::ModuleModel>(std::move(module)));
}

Session::~Session() = default;

int Session::rank() const { return world_.rank(); }
int Session::workers() const { return parts_ ? parts_->workers.size() : world_.size() - options_.servers; }
const parallel::Replica& Session::replica() const { return parts().replica; }

SessionParts& Session::parts() const {
  check(parts_ != nullptr, "a rank that serves has no replica");
  return *parts_;
}

void Session::start(std::shared_ptr<nn::Model> model) {
  const int servers = servers_of(options_);
  if (servers >= world_.size()) {
    throw ConfigError("servers must leave at least one of the {} ranks to train, got {}", world_.size(),
                      servers);
  }
  serves_ = world_.rank() >= world_.size() - servers;
  if (serves_) return;
  try {
    parts_ = std::make_unique<SessionParts>(std::move(model), world_, options_);
  } catch (const CommError& error) {
    world_.rethrow(error);
  }
}

void Session::serve() {
  check(serves_, "this rank trains");
  world_.status(-1, "serving");
  parallel::serve(world_.group(), server_options(options_, workers()));
}

uint64_t Session::noise_key() const {
  return mix_key(options_.seed, static_cast<uint64_t>(ticket_.value_or(steps_)));
}

Session::Forward Session::forward(std::span<const int64_t> ids) const {
  const parallel::Replica& replica = parts().replica;
  replica.model.set_mode({.training = true, .noise_key = noise_key()});
  return Forward(noise_key(), ids, replica.precision, replica.params.values.device());
}

tensor::Batch Session::numbered(const tensor::Batch& batch) const {
  tensor::Batch whole = batch;
  const int64_t size = batch.fields.empty() ? 0 : batch.fields.begin()->second.size(0);
  for (int64_t i = 0; i < size; ++i)
    whole.ids.push_back(static_cast<int64_t>(mix_key(rank(), steps_, i) >> 1));
  return whole;
}

double Session::step(std::span<const tensor::Batch> micro, double lr) {
  std::vector<tensor::Batch> full;
  for (const tensor::Batch& batch : micro) {
    tensor::Batch whole = batch.ids.empty() ? numbered(batch) : batch;
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
  if (const auto stray = p.params.strayed()) {
    throw ConfigError(
        "the parameter {} or its gradient was moved since the session began; leave zero_grad() and to() to "
        "the session",
        *stray);
  }
  try {
    if (p.free != nullptr && !ticket_) take_ticket();
    world_.status(steps_ + 1, "step");
    const bool first = !p.checked_gradients;
    if (first) p.watch_gradients();
    last_ = p.runner.step(micro, {.step = ticket_.value_or(steps_), .lr = lr, .noise_key = noise_key()});
    if (first) p.require_gradients(options_.allow_unused);
  } catch (const CommError& error) {
    world_.rethrow(error);
  }
  ticket_.reset();
  ++steps_;
  return last_.count > 0 ? last_.sum / last_.count : 0;
}

int64_t Session::take_ticket() {
  SessionParts& p = parts();
  if (!open_) p.free->open(p.replica, tickets_, std::numeric_limits<int64_t>::max() / 2);
  open_ = true;
  ticket_ = p.free->take(false);
  check(ticket_.has_value(), "a section without an end has a ticket");
  return *ticket_;
}

void Session::close_section() {
  if (!open_) return;
  tickets_ += parts().free->close(parts().replica);
  open_ = false;
}

void Session::with_model(const std::function<void()>& use) {
  SessionParts& p = parts();
  close_section();
  std::vector<at::Tensor> kept;
  if (p.strategy->traits().replicas_differ) kept.push_back(p.params.values);
  for (const auto& named : p.replica.model.buffers()) kept.push_back(named.tensor);
  std::vector<at::Tensor> own;
  for (const at::Tensor& tensor : kept) own.push_back(tensor.clone());
  p.settle(options_.buffers);
  p.replica.model.set_mode({.training = false});
  use();
  for (size_t i = 0; i < own.size(); ++i) kept[i].copy_(own[i]);
}

parallel::Settled Session::finish() {
  close_section();
  return parts().settle(options_.buffers);
}

void Session::save(const std::filesystem::path& path) {
  close_section();
  SessionParts& p = parts();
  train::ReplicaParts replica(p.trained(options_.buffers));
  SessionPart own(p.runner, [&] { return progress(); }, {});
  try {
    train::save_checkpoint(path, p.workers, replica.and_then(own));
  } catch (const CommError& error) {
    world_.rethrow(error);
  }
}

std::vector<std::string> Session::resume(const std::filesystem::path& path) {
  SessionParts& p = parts();
  if (steps_ > 0) throw ConfigError("a session resumes before its first step, not after {}", steps_);
  train::ReplicaParts replica(p.trained(options_.buffers));
  SessionPart own(p.runner, {}, [&](const nlohmann::ordered_json& values, train::Resumption& how) {
    restore(values, how);
  });
  try {
    return train::restore_checkpoint(path, p.workers, replica.and_then(own)).notes;
  } catch (const CommError& error) {
    world_.rethrow(error);
  }
}

nlohmann::ordered_json Session::progress() const {
  nlohmann::ordered_json values = named_options(options_);
  values["steps"] = steps_;
  values["updates"] = tickets_;
  return values;
}

void Session::restore(const nlohmann::ordered_json& values, train::Resumption& how) {
  const nlohmann::ordered_json now = named_options(options_);
  for (const auto& [name, value] : now.items()) {
    if (values.at(name) == value) continue;
    throw ConfigError("a session resumes with the options it began with, but {} was {} and is {} now", name,
                      values.at(name).dump(), value.dump());
  }
  steps_ = values.at("steps");
  tickets_ = values.at("updates");
  if (how.resized()) how.note(fmt::format("workers were {} and are {} now", how.ranks_before, how.ranks_now));
  if (parts().free == nullptr) return;
  steps_ = tickets_ / how.ranks_before;  // a step is an update of each worker
  if (how.resized()) tickets_ = steps_ * how.ranks_now;
}

void Session::leave() {
  if (!serves_) {
    close_section();
    parts().strategy->leave();
    parts_.reset();  // its group goes with the world
  }
  if (own_world_) own_world_->leave();
}

data::StepBatches Session::Batches::next() {
  if (session_.parts().free != nullptr) loader_->request(session_.take_ticket());
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
  if (!free) loader_->seek(session.steps());
}

Session::Batches Session::batches(std::shared_ptr<const data::Dataset> dataset, data::LoaderOptions options) {
  return {*this, std::move(dataset), std::move(options)};
}

}  // namespace syncopate
