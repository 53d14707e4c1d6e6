#include "syncopate/train/trainer.h"

#include <ATen/ATen.h>

#include <cmath>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/comm/broadcast_text.h"
#include "syncopate/train/checkpoint.h"
#include "syncopate/train/evaluate.h"
#include "syncopate/train/rank_states.h"

namespace syncopate::train {
namespace {

[[noreturn]] void diverged(int64_t step) {
  throw DivergedError(
      "the test loss after step {} is not a number; try a smaller --lr, a longer --warmup or --clip 1", step);
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
    : parts_(parts),
      options_(std::move(options)),
      lockstep_(parts.replica, parts.engine, parts.strategy, parts.group),
      control_(options_.control),
      counters_(at::zeros({4}, at::kDouble)) {
  if (options_.balance) balance_.emplace(parts_.group, parts_.loader.global_batch(), *options_.balance);
}

TrainResult Trainer::run(bool resume) {
  parts_.strategy.start(parts_.replica);
  const int64_t first = resume ? restore() : 0;
  parts_.loader.seek(first);
  result_.steps = first;
  while (result_.steps < options_.steps && !result_.interrupted && !ends_early()) {
    const int64_t done = result_.steps = advance(result_.steps);
    if (done == options_.steps) result_.interrupted = false;  // nothing was left to interrupt
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
  if (auto* const free = parts_.strategy.free_running()) {
    result_.updates = updates_;
    result_.staleness = free->staleness();
  }
  parts_.strategy.leave();
  return result_;
}

int64_t Trainer::advance(int64_t step) {
  if (auto* const free = parts_.strategy.free_running()) return run_section(*free, step);
  result_.interrupted = !train_step(step);
  return step + 1;
}

bool Trainer::ends_early() {
  if (time_is_up_) {
    result_.ended = "time limit";
  } else if (control_.out_of_patience()) {
    result_.ended = "plateau";
  }
  return result_.ended != "steps";
}

bool Trainer::buffers_differ() const {
  return parts_.group.size() > 1 && !parts_.replica.model.every_rank_computes();
}

void Trainer::settle() {
  parts_.strategy.settle(parts_.replica);
  if (!buffers_differ() || parts_.strategy.settles_buffers()) return;
  const double workers = parts_.group.size();
  for (const auto& [name, buffer] : parts_.replica.model.buffers()) {
    if (options_.broadcast_buffers) {
      parts_.group.broadcast(buffer, 0).wait();
    } else if (buffer.is_floating_point()) {
      at::Tensor(buffer).div_(workers);
      parts_.group.all_reduce(buffer, comm::Op::kSum).wait();
    }
  }
}

bool Trainer::ranks_count_apart() const {
  return parts_.strategy.replicas_differ() || parts_.strategy.free_running() != nullptr;
}

void Trainer::note_counters() {
  double* const counters = counters_.data_ptr<double>();
  counters[0] = static_cast<double>(parts_.replica.optimizer.steps_done());
  if (parts_.replica.loss_scale == nullptr) return;
  const auto [value, good_steps, skipped] = parts_.replica.loss_scale->state();
  counters[1] = value;
  counters[2] = good_steps;
  counters[3] = skipped;
}

void Trainer::take_counters() {
  const double* const counters = counters_.data_ptr<double>();
  parts_.replica.optimizer.set_steps_done(std::llround(counters[0]));
  if (parts_.replica.loss_scale == nullptr) return;
  parts_.replica.loss_scale->restore(
      {.value = counters[1], .good_steps = counters[2], .skipped = counters[3]});
}

std::vector<tensor::NamedTensor> Trainer::state_of_rank() {
  std::vector<tensor::NamedTensor> state;
  if (ranks_count_apart()) state.push_back({"counters", counters_});
  for (const auto& named : parts_.strategy.state()) state.push_back({"strategy." + named.name, named.tensor});
  if (parts_.group.rank() == 0) return state;  // the rest of it is there anyway
  if (buffers_differ() && !options_.broadcast_buffers) {
    for (const auto& named : parts_.replica.model.buffers())
      state.push_back({"buffer." + named.name, named.tensor});
  }
  if (parts_.strategy.replicas_differ()) {
    for (const auto& named : state_of(parts_.replica)) {
      if (!named.name.starts_with("buffer.")) state.push_back(named);
    }
  }
  return state;
}

int64_t Trainer::skipped_steps() {
  at::Tensor skipped = at::full({1}, parts_.replica.loss_scale->skipped(), at::kLong);
  if (ranks_count_apart()) parts_.group.all_reduce(skipped, comm::Op::kSum).wait();
  return skipped.item<int64_t>();
}

double Trainer::bytes_sent_by_all() {
  at::Tensor bytes = at::full({1}, bytes_sent_, at::kDouble);
  parts_.group.all_reduce(bytes, comm::Op::kSum).wait();
  return bytes_before_ + bytes.item<double>();
}

bool Trainer::due(int64_t every, int64_t steps_done) const {
  return every > 0 ? steps_done % every == 0 : epoch_ended_;
}

double Trainer::Step::own_loss() const {
  return outcome.mine.count > 0 ? outcome.mine.sum / static_cast<double>(outcome.mine.count) : std::nan("");
}

Trainer::Step Trainer::one_step(int64_t step) {
  const Stopwatch watch;
  parallel::Replica& replica = parts_.replica;
  const comm::Meter before = parts_.group.meter();
  phase(step + 1, "data");
  const data::StepBatches batches = parts_.loader.next();
  const double data_seconds = watch.seconds();
  const bool together = parts_.strategy.free_running() == nullptr;
  epoch_ended_ = batches.last_of_epoch;
  replica.step = step;
  replica.lr = parts_.schedule.lr(step / options_.updates_per_step) * control_.rate_factor();
  replica.apply_seconds = 0;
  if (options_.broadcast_buffers && parts_.group.size() > 1) {
    for (const auto& [name, buffer] : replica.model.buffers()) parts_.group.broadcast(buffer, 0).wait();
  }
  // Whoever takes a free step, its noise is the same.
  const uint64_t noise =
      mix_key(options_.seed, static_cast<uint64_t>(step), together ? parts_.group.rank() : 0);
  // What is written down at an evaluation or in a checkpoint must count every rank's examples.
  const bool accounts =
      together && (epoch_ended_ || step + 1 == options_.steps || due(options_.eval_every, step + 1) ||
                   due(options_.save_every, step + 1));
  Step done;
  done.epoch = batches.epoch;
  done.outcome = lockstep_.step(batches.micro, noise,
                                {.phase = [&](const char* name) { phase(step + 1, name); },
                                 .stop = [&] { return parts_.listener.stop_requested(); },
                                 .time_is_up = [&] { return control_.time_is_up(); },
                                 .talk = accounts});
  // An evaluation or a checkpoint would end what is on its way, and its bytes are not counted.
  if (accounts || done.outcome.stop || done.outcome.time_is_up) parts_.strategy.catch_up();
  const double seconds = watch.seconds();
  if (balance_) {
    const double blocked = (parts_.group.meter() - before).total().seconds;
    balance(batches, seconds - data_seconds - blocked, step + 1);
  }
  record::StepRecord& record = done.record;
  record.step = step + 1;
  if (done.outcome.count > 0) loss_ = done.outcome.sum / done.outcome.count;
  record.loss = loss_;
  record.lr = replica.lr;
  record.examples = batches.global_examples;
  record.ms = 1e3 * seconds;
  record.exchange_ms = 1e3 * done.outcome.exchange_seconds;
  record.data_ms = 1e3 * data_seconds;
  record.compute_ms = record.ms - record.exchange_ms - record.data_ms;
  record.bytes_sent = static_cast<double>((parts_.group.meter() - before).total().bytes);
  record.grad_norm = replica.gradient_norm;
  return done;
}

bool Trainer::train_step(int64_t step) {
  const Step done = one_step(step);
  time_is_up_ = done.outcome.time_is_up;
  bytes_sent_ += done.record.bytes_sent;
  sums_.epoch = done.epoch;
  if (done.outcome.talked) {
    sums_.loss += done.outcome.sum;
    sums_.count += done.outcome.count;
  }
  sums_.seconds += done.record.ms / 1e3;
  result_.seconds += done.record.ms / 1e3;
  parts_.listener.step(done.record, done.own_loss());
  return !done.outcome.stop;
}

void Trainer::balance(const data::StepBatches& batches, double seconds, int64_t steps_done) {
  int64_t examples = 0;
  for (const tensor::Batch& batch : batches.micro) examples += batch.size();
  balance_->measure(examples, seconds);
  if (!balance_->adjust(steps_done)) return;
  parts_.loader.set_shares(balance_->shares());
  parts_.listener.shares(steps_done, balance_->shares());
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
  phase(steps_done, "evaluation");
  // Training goes on with a rank's own, whenever a run is evaluated.
  std::vector<tensor::NamedTensor> mine = parts_.replica.model.buffers();
  if (parts_.strategy.replicas_differ()) mine.push_back({"parameters", parts_.replica.params.values});
  std::vector<at::Tensor> own;
  for (const auto& named : mine) own.push_back(named.tensor.clone());
  settle();
  const auto metric = parts_.metric();
  record::EvalRecord record =
      evaluate(parts_.replica.model, *parts_.test, parts_.group, *metric,
               {.batch_size = options_.eval_batch, .precision = parts_.replica.precision});
  if (!std::isfinite(record.loss)) diverged(steps_done);
  for (size_t i = 0; i < own.size(); ++i) at::Tensor(mine[i].tensor).copy_(own[i]);
  record.step = steps_done;
  record.model = parts_.strategy.settled();
  control_.evaluated(record.loss);
  result_.eval = record;
  eval_step_ = steps_done;
  ++evals_;
  parts_.listener.eval(record);
}

void Trainer::save(int64_t steps_done) {
  if (options_.checkpoint.empty()) return;
  phase(steps_done, "checkpoint");
  note_counters();
  const std::vector<tensor::NamedTensor> own = gather_states(parts_.group, state_of_rank());
  const double bytes_sent = bytes_sent_by_all();
  if (parts_.group.rank() == 0) {
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
                        {"updates", updates_},
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
  if (parts_.group.rank() == 0) {
    checkpoint = load_checkpoint(options_.checkpoint);
    restore_tensors(checkpoint.tensors, into, options_.checkpoint);
    text = checkpoint.state.dump();
  }
  for (const auto& [name, tensor] : into) parts_.group.broadcast(tensor, 0).wait();
  scatter_states(parts_.group, checkpoint.tensors, state_of_rank(), options_.checkpoint);
  checkpoint.state = nlohmann::ordered_json::parse(comm::broadcast_text(parts_.group, text, 0));
  const auto& state = checkpoint.state;
  parts_.replica.optimizer.set_steps_done(state.at("optimizer_steps"));
  sums_ = {.epoch = state.at("epoch"),
           .loss = state.at("epoch_loss"),
           .count = state.at("epoch_count"),
           .seconds = state.at("epoch_seconds")};
  bytes_before_ = state.at("bytes_sent");
  result_.seconds = state.value("seconds", 0.0);
  updates_ = state.value("updates", std::vector<int64_t>());
  if (parts_.replica.loss_scale != nullptr && state.contains("loss_scale")) {
    const auto& scale = state.at("loss_scale");
    parts_.replica.loss_scale->restore(
        {.value = scale.at(0), .good_steps = scale.at(1), .skipped = scale.at(2)});
  }
  if (ranks_count_apart()) take_counters();
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
    throw ConfigError(
        "--resume needs the data and vocabulary the run began with: they were {} and are {} now",
        state.at("inputs").dump(), options_.inputs.dump());
  }
  const int64_t done = state.at("loader_step");
  parts_.strategy.resumed(parts_.replica);
  const bool free = parts_.strategy.free_running() != nullptr && !updates_.empty();
  const int64_t own = free ? updates_.at(static_cast<size_t>(parts_.group.rank())) : done;
  parts_.listener.resumed(done, own, evals_, notes);
  return done;
}

}  // namespace syncopate::train
