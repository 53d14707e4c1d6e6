#include "syncopate/train/trainer.h"

#include <ATen/ATen.h>

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/comm/broadcast_text.h"
#include "syncopate/parallel/settle.h"
#include "syncopate/train/checkpoint.h"
#include "syncopate/train/evaluate.h"
#include "syncopate/train/rank_states.h"

namespace syncopate::train {
namespace {

[[noreturn]] void diverged(int64_t step) {
  throw DivergedError(
      "the test loss after step {} is not a number; try a smaller learning rate, a longer warm-up or "
      "clipping",
      step);
}

/// The tensors that a checkpoint holds: what `save` writes and `restore` fills.
std::vector<tensor::NamedTensor> state_of(const parallel::Replica& replica) {
  std::vector<tensor::NamedTensor> tensors{{"parameters", replica.params.values}};
  for (const auto& named : replica.model.buffers()) tensors.push_back({"buffer." + named.name, named.tensor});
  for (const auto& named : replica.optimizer.state()) {
    tensors.push_back({"optimizer." + named.name, named.tensor});
  }
  return tensors;
}

}  // namespace

Trainer::Trainer(Parts parts, TrainerOptions options)
    : parts_(parts), options_(std::move(options)), control_(options_.control) {
  if (options_.balance) {
    balance_.emplace(parts_.mesh.replicas, parts_.loader.global_batch(), *options_.balance);
  }
  loop_ = parts_.loop({.replica = parts_.replica,
                       .engine = parts_.engine,
                       .strategy = parts_.strategy,
                       .mesh = parts_.mesh,
                       .meter = parts_.meter,
                       .loader = parts_.loader,
                       .schedule = parts_.schedule,
                       .listener = parts_.listener,
                       .control = control_},
                      {.steps = options_.steps,
                       .eval_every = options_.eval_every,
                       .save_every = options_.save_every,
                       .updates_per_step = options_.updates_per_step,
                       .broadcast_buffers = options_.broadcast_buffers,
                       .seed = options_.seed,
                       .balance = balance_ ? &*balance_ : nullptr});
}

TrainResult Trainer::run(bool resume) {
  parts_.strategy.start(parts_.replica);
  const int64_t first = resume ? restore() : 0;
  parts_.loader.seek(first);
  result_.steps = first;
  while (result_.steps < options_.steps && !result_.interrupted && !ends_early()) {
    const int64_t done = advance();
    if (options_.eval_every > 0 && done % options_.eval_every == 0) evaluate_now(done);
    if (epoch_ended_) end_of_epoch(done);
    if (result_.interrupted || (due(options_.save_every, done) && done < options_.steps)) save(done);
  }
  if (!result_.interrupted) {
    evaluate_now(result_.steps);
    // Before the epoch that the steps reached into is closed: a longer run goes on in it.
    if (result_.steps > first) save(result_.steps);
    if (sums_.count > 0) end_of_epoch(result_.steps);
    settle();
  }
  result_.bytes_sent = bytes_sent_by_all();
  if (balance_) result_.shares = balance_->shares();
  if (parts_.replica.loss_scale != nullptr) result_.skipped = skipped_steps();
  result_.updates = loop_->updates();
  result_.staleness = loop_->staleness();
  parts_.strategy.leave();
  return result_;
}

int64_t Trainer::advance() {
  const Advance progress = loop_->advance(result_.steps);
  result_.steps = progress.done;
  result_.interrupted = progress.interrupted && progress.done < options_.steps;  // else nothing was left
  time_is_up_ = progress.time_is_up;
  epoch_ended_ = progress.epoch_ended;
  bytes_sent_ += progress.bytes_sent;
  result_.seconds += progress.seconds;
  sums_.seconds += progress.seconds;
  sums_.epoch = progress.epoch;
  sums_.loss += progress.loss;
  sums_.count += progress.count;
  return progress.done;
}

bool Trainer::ends_early() {
  if (time_is_up_) {
    result_.ended = "time limit";
  } else if (control_.out_of_patience()) {
    result_.ended = "plateau";
  }
  return result_.ended != "steps";
}

parallel::Settled Trainer::settle() {
  return parallel::settle(
      parts_.strategy, parts_.replica, parts_.mesh.replicas,
      options_.broadcast_buffers ? parallel::Buffers::kOfRankZero : parallel::Buffers::kMean);
}

std::vector<tensor::NamedTensor> Trainer::state_of_rank() {
  std::vector<tensor::NamedTensor> state;
  if (parts_.strategy.traits().counts_apart) state.push_back({"counters", counters_.tensor()});
  for (const auto& named : parts_.strategy.state()) state.push_back({"strategy." + named.name, named.tensor});
  if (parts_.mesh.world.rank() == 0) return state;  // the rest of it is there anyway
  if (parallel::buffers_differ(parts_.replica, parts_.mesh.replicas) && !options_.broadcast_buffers) {
    for (const auto& named : parts_.replica.model.buffers())
      state.push_back({"buffer." + named.name, named.tensor});
  }
  if (parts_.strategy.traits().replicas_differ) {
    for (const auto& named : state_of(parts_.replica)) {
      if (!named.name.starts_with("buffer.")) state.push_back(named);
    }
  }
  return state;
}

int64_t Trainer::skipped_steps() {
  at::Tensor skipped = at::full({1}, parts_.replica.loss_scale->skipped(), at::kLong);
  if (parts_.strategy.traits().counts_apart) parts_.mesh.world.all_reduce(skipped, comm::Op::kSum).wait();
  return skipped.item<int64_t>();
}

double Trainer::bytes_sent_by_all() {
  at::Tensor bytes = at::full({1}, bytes_sent_, at::kDouble);
  parts_.mesh.world.all_reduce(bytes, comm::Op::kSum).wait();
  return bytes_before_ + bytes.item<double>();
}

bool Trainer::due(int64_t every, int64_t steps_done) const {
  return every > 0 ? steps_done % every == 0 : epoch_ended_;
}

void Trainer::end_of_epoch(int64_t steps_done) {
  evaluate_now(steps_done);
  record::EpochRecord record;
  record.epoch = sums_.epoch + 1;
  record.seconds = sums_.seconds;
  record.loss = sums_.loss / sums_.count;
  if (eval_step_ == steps_done) record.eval = result_.eval;
  result_.epochs.push_back(record);
  sums_ = {.epoch = sums_.epoch + 1};
  parts_.listener.epoch(record);
}

void Trainer::evaluate_now(int64_t steps_done) {
  if (parts_.test == nullptr || eval_step_ == steps_done) return;
  parts_.listener.phase(steps_done, "evaluation");
  // Training goes on with a rank's own, whenever a run is evaluated.
  std::vector<tensor::NamedTensor> mine = parts_.replica.model.buffers();
  if (parts_.strategy.traits().replicas_differ) mine.push_back({"parameters", parts_.replica.params.values});
  std::vector<at::Tensor> own;
  for (const auto& named : mine) own.push_back(named.tensor.clone());
  const parallel::Settled settled = settle();
  const auto metric = parts_.metric();
  record::EvalRecord record =
      evaluate(parts_.replica.model, *parts_.test, parts_.mesh.world, *metric,
               {.batch_size = options_.eval_batch, .precision = parts_.replica.precision});
  if (!std::isfinite(record.loss)) diverged(steps_done);
  for (size_t i = 0; i < own.size(); ++i) at::Tensor(mine[i].tensor).copy_(own[i]);
  record.step = steps_done;
  record.model = settled.model;
  control_.evaluated(record.loss);
  result_.eval = record;
  eval_step_ = steps_done;
  ++evals_;
  parts_.listener.eval(record);
}

void Trainer::save(int64_t steps_done) {
  if (options_.checkpoint.empty()) return;
  parts_.listener.phase(steps_done, "checkpoint");
  counters_.note(parts_.replica);
  const std::vector<tensor::NamedTensor> own = gather_states(parts_.mesh.world, state_of_rank());
  const double bytes_sent = bytes_sent_by_all();
  if (parts_.mesh.world.rank() == 0) {
    Checkpoint checkpoint;
    checkpoint.tensors = state_of(parts_.replica);
    checkpoint.tensors.insert(checkpoint.tensors.end(), own.begin(), own.end());
    nlohmann::ordered_json epochs = nlohmann::ordered_json::array();
    for (const auto& epoch : result_.epochs) epochs.push_back(record::to_json(epoch));
    checkpoint.state = {{"steps_done", steps_done},
                        {"optimizer_steps", parts_.replica.optimizer.steps_done()},
                        {"loader_step", steps_done},
                        {"seed", options_.seed},
                        {"bytes_sent", bytes_sent},
                        {"seconds", result_.seconds},
                        {"updates", loop_->updates()},
                        {"evals", evals_},
                        {"control", control_.state()},
                        {"eval", result_.eval ? record::to_json(*result_.eval) : nlohmann::ordered_json()},
                        {"epoch", sums_.epoch},
                        {"epoch_loss", sums_.loss},
                        {"epoch_count", sums_.count},
                        {"epoch_seconds", sums_.seconds},
                        {"epochs", epochs},
                        {"inputs", options_.inputs},
                        {"environment", options_.environment}};
    if (const auto* scale = parts_.replica.loss_scale) {
      const auto [value, good_steps, skipped] = scale->state();
      checkpoint.state["loss_scale"] = {value, good_steps, skipped};
    }
    if (balance_) checkpoint.state["shares"] = balance_->shares();
    save_checkpoint(options_.checkpoint, checkpoint);
  }
  parts_.listener.saved(steps_done);
}

int64_t Trainer::restore() {
  // Rank 0 alone reads the file: other machines need not see it.
  Checkpoint checkpoint;
  std::string text;
  const std::vector<tensor::NamedTensor> into = state_of(parts_.replica);
  if (parts_.mesh.world.rank() == 0) {
    checkpoint = load_checkpoint(options_.checkpoint);
    restore_tensors(checkpoint.tensors, into, options_.checkpoint);
    text = checkpoint.state.dump();
  }
  for (const auto& [name, tensor] : into) parts_.mesh.world.broadcast(tensor, 0).wait();
  scatter_states(parts_.mesh.world, checkpoint.tensors, state_of_rank(), options_.checkpoint);
  checkpoint.state = nlohmann::ordered_json::parse(comm::broadcast_text(parts_.mesh.world, text, 0));
  const auto& state = checkpoint.state;
  parts_.replica.optimizer.set_steps_done(state.at("optimizer_steps"));
  sums_ = {.epoch = state.at("epoch"),
           .loss = state.at("epoch_loss"),
           .count = state.at("epoch_count"),
           .seconds = state.at("epoch_seconds")};
  bytes_before_ = state.at("bytes_sent");
  result_.seconds = state.value("seconds", 0.0);
  loop_->restore_updates(state.value("updates", std::vector<int64_t>()));
  if (parts_.replica.loss_scale != nullptr && state.contains("loss_scale")) {
    const auto& scale = state.at("loss_scale");
    parts_.replica.loss_scale->restore(
        {.value = scale.at(0), .good_steps = scale.at(1), .skipped = scale.at(2)});
  }
  if (parts_.strategy.traits().counts_apart) counters_.restore(parts_.replica);
  if (balance_ && state.contains("shares")) {
    balance_->restore(state.at("shares"));
    parts_.loader.set_shares(balance_->shares());
  }
  if (state.contains("control")) control_.restore(state.at("control"));
  evals_ = state.at("evals");
  if (!state.at("eval").is_null()) {
    result_.eval = record::eval_from_json(state.at("eval"));
    eval_step_ = result_.eval->step;
  }
  for (const auto& epoch : state.at("epochs")) result_.epochs.push_back(record::epoch_from_json(epoch));
  std::vector<std::string> notes;
  for (const auto& [name, value] : state.at("environment").items()) {
    const auto now = options_.environment.value(name, nlohmann::ordered_json());
    if (now != value) notes.push_back(fmt::format("{} was {} and is {} now", name, value.dump(), now.dump()));
  }
  if (state.at("inputs") != options_.inputs) {
    throw ConfigError("a run resumes with the data and vocabulary it began with: they were {} and are {} now",
                      state.at("inputs").dump(), options_.inputs.dump());
  }
  const int64_t done = state.at("loader_step");
  parts_.strategy.resumed(parts_.replica);
  parts_.listener.resumed(done, loop_->own_steps(done), evals_, notes);
  return done;
}

}  // namespace syncopate::train
