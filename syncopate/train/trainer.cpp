#include "syncopate/train/trainer.h"

#include <ATen/ATen.h>

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/nn/fingerprint.h"
#include "syncopate/parallel/settle.h"
#include "syncopate/train/evaluate.h"

namespace syncopate::train {
namespace {

[[noreturn]] void diverged(const std::string& split, int64_t step) {
  throw DivergedError(
      "the {} loss after step {} is not a number; try a smaller learning rate, a longer warm-up or "
      "clipping",
      split, step);
}

}  // namespace

Trainer::Trainer(Parts parts, TrainerOptions options)
    : parts_(parts), options_(std::move(options)), control_(options_.control) {
  if (options_.balance) {
    balance_.emplace(parts_.mesh.replicas, parts_.loader.global_batch(), *options_.balance);
  }
  if (options_.keep_best) {
    check(parts_.validation != nullptr && !options_.checkpoint.empty(),
          "the best model is chosen by a validation set and kept in a file");
    best_.emplace(options_.checkpoint, parts_.mesh.world);
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
                       .balance = balance_ ? &*balance_ : nullptr,
                       .noise_scale = options_.noise_scale});
}

TrainResult Trainer::run(bool resume) {
  parts_.strategy.start(parts_.replica);
  if (!resume)
    start_hash_ = !options_.start_hash.empty() ? options_.start_hash : nn::fingerprint(parts_.replica.model);
  const int64_t first = resume ? restore() : 0;
  parts_.loader.seek(first);
  result_.steps = first;
  while (result_.steps < options_.steps && !result_.interrupted && !ends_early()) {
    // After an exchange they would all be the same: before the last step, if it ends with one.
    if (result_.steps == options_.steps - 1 && parts_.strategy.exchanges(result_.steps)) score_workers();
    const int64_t before = result_.steps, done = advance();
    const bool moved = done > before;  // else all halted before a step
    const bool evaluates = moved && options_.eval_every > 0 && done % options_.eval_every == 0;
    const bool saves = ((moved && due(options_.save_every, done)) || save_wished_) && done < options_.steps;
    if (evaluates || epoch_ended_ || saves || result_.interrupted) bring_together();
    if (evaluates) evaluate_now(done);
    if (epoch_ended_) end_of_epoch(done);
    if (saves || result_.interrupted) save(done);
  }
  const bool stopped = result_.interrupted;
  bring_together();
  result_.interrupted = stopped;  // a wish that comes now comes too late: the run ends here
  if (!stopped) {
    score_workers();
    evaluate_now(result_.steps);
    // Before the epoch that the steps reached into is closed: a longer run goes on in it.
    if (result_.steps > first) save(result_.steps);
    if (sums_.count > 0) end_of_epoch(result_.steps);
    conclude();
  }
  result_.own_sent = sent_;
  const comm::Meter sent = sent_by_all();
  result_.bytes_sent = bytes_before_ + static_cast<double>(sent.total().bytes);
  if (sent_before_) result_.sent = *sent_before_ += sent;
  if (balance_) result_.shares = balance_->shares();
  if (parts_.replica.loss_scale != nullptr) result_.skipped = skipped_steps();
  result_.updates = loop_->updates();
  result_.staleness = loop_->staleness();
  result_.start_hash = start_hash_;
  if (options_.noise_scale != nullptr)
    result_.noise_scale = options_.noise_scale->estimate(parts_.mesh.world);
  parts_.strategy.leave();
  return result_;
}

int64_t Trainer::advance() {
  const Advance progress = loop_->advance(result_.steps);
  recorded_ += progress.done - result_.steps;
  result_.steps = progress.done;
  result_.interrupted = progress.wishes.stop && progress.done < options_.steps;  // else nothing was left
  time_is_up_ = progress.wishes.time_is_up;
  save_wished_ = progress.wishes.save;
  epoch_ended_ = progress.epoch_ended;
  sent_ += progress.sent;
  result_.seconds += progress.seconds;
  sums_.seconds += progress.seconds;
  sums_.epoch = progress.epoch;
  sums_.loss += progress.loss;
  sums_.count += progress.count;
  return progress.done;
}

void Trainer::bring_together() {
  const Advance added = loop_->bring_together();
  result_.interrupted |= added.wishes.stop && result_.steps < options_.steps;
  time_is_up_ |= added.wishes.time_is_up;
  sent_ += added.sent;
  result_.seconds += added.seconds;
  sums_.seconds += added.seconds;
  sums_.loss += added.loss;
  sums_.count += added.count;
}

bool Trainer::ends_early() {
  if (time_is_up_) {
    result_.ended = "time limit";
  } else if (control_.out_of_patience()) {
    result_.ended = "plateau";
  }
  return result_.ended != "steps";
}

Trained Trainer::trained() const {
  return {.replica = parts_.replica,
          .strategy = parts_.strategy,
          .group = parts_.mesh.replicas,
          .buffers = options_.broadcast_buffers ? parallel::Buffers::kOfRankZero : parallel::Buffers::kMean,
          .staged = parts_.mesh.staged()};
}

parallel::Settled Trainer::settle() {
  const Trained all = trained();
  return parallel::settle(all.strategy, all.replica, all.group, all.buffers);
}

int64_t Trainer::skipped_steps() {
  at::Tensor skipped = at::full({1}, parts_.replica.loss_scale->skipped(), at::kLong);
  // The stages of a replica skip together.
  if (parts_.strategy.traits().counts_apart) parts_.mesh.replicas.all_reduce(skipped, comm::Op::kSum).wait();
  return skipped.item<int64_t>();
}

comm::Meter Trainer::sent_by_all() {
  std::vector<double> numbers = sent_.numbers();
  const at::Tensor sums = at::from_blob(numbers.data(), {static_cast<int64_t>(numbers.size())}, at::kDouble);
  parts_.mesh.world.all_reduce(sums, comm::Op::kSum).wait();
  return comm::Meter::of_numbers(numbers);
}

bool Trainer::due(int64_t every, int64_t steps_done) const {
  return every > 0 ? steps_done % every == 0 : every == 0 && epoch_ended_;
}

void Trainer::end_of_epoch(int64_t steps_done) {
  evaluate_now(steps_done);
  record::EpochRecord record;
  record.epoch = sums_.epoch + 1;
  record.seconds = sums_.seconds;
  record.loss = sums_.loss / sums_.count;
  if (eval_step_ == steps_done) record.eval = last_eval_;
  result_.epochs.push_back(record);
  sums_ = {.epoch = sums_.epoch + 1};
  parts_.listener.epoch(record);
}

record::EvalRecord Trainer::score(bool on_validation, int64_t steps_done, const std::string& model) {
  const data::Dataset& examples = on_validation ? *parts_.validation : *parts_.test;
  const auto metric = on_validation ? parts_.validation_metric() : parts_.metric();
  record::EvalRecord record = evaluate(parts_.replica.model, examples, parts_.mesh.world, *metric,
                                       {.batch_size = options_.eval_batch,
                                        .engine = &parts_.engine,
                                        .sharers = &parts_.mesh.replicas,
                                        .precision = parts_.replica.precision,
                                        .split = on_validation ? "validation" : "test"});
  record.model = model;
  record.step = steps_done;
  if (!std::isfinite(record.loss)) diverged(record.split, steps_done);
  return record;
}

void Trainer::score_workers() {
  if (!options_.worker_evals || parts_.test == nullptr || !result_.worker_evals.empty()) return;
  parts_.listener.phase(result_.steps, "evaluation");
  std::vector<at::Tensor> tensors{parts_.replica.params.values}, own;
  for (const auto& named : parts_.replica.model.buffers()) tensors.push_back(named.tensor);
  for (const at::Tensor& tensor : tensors) own.push_back(tensor.clone());
  const auto take_back = [&] {
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_(own[i]);
  };
  comm::Group& replicas = parts_.mesh.replicas;
  for (int worker = 0; worker < replicas.size(); ++worker) {
    take_back();
    for (const at::Tensor& tensor : tensors) replicas.broadcast(tensor, worker).wait();
    result_.worker_evals.push_back(score(false, result_.steps, fmt::format("worker {}'s own", worker)));
  }
  take_back();
}

void Trainer::evaluate_now(int64_t steps_done) {
  const bool on_validation = parts_.validation != nullptr;
  if ((parts_.test == nullptr && !on_validation) || eval_step_ == steps_done) return;
  parts_.listener.phase(steps_done, "evaluation");
  {
    const train::Trained all = trained();
    const parallel::AsSettled settled(all.strategy, all.replica, all.group, all.buffers);
    last_eval_ = score(on_validation, steps_done, settled.model());
    if (best_) best_->offer(parts_.replica.model, *last_eval_);
  }
  control_.evaluated(last_eval_->loss);
  eval_step_ = steps_done;
  ++evals_;
  parts_.listener.eval(*last_eval_);
}

void Trainer::conclude() {
  const parallel::Settled settled = settle();
  result_.kept_step = result_.steps;
  if (parts_.validation == nullptr) {
    result_.eval = last_eval_;
    if (result_.eval) add_coded_score(*result_.eval);
    return;
  }
  result_.validation = last_eval_;
  std::string model = settled.model;
  if (best_ && best_->eval()) {  // else nothing was evaluated since --keep best was asked for
    best_->load(parts_.replica.model);
    result_.kept_best = true;
    result_.validation = best_->eval();
    result_.kept_step = best_->eval()->step;
    model = best_->eval()->model;
  }
  if (parts_.test == nullptr) return;
  parts_.listener.phase(result_.steps, "evaluation");
  result_.eval = score(false, result_.kept_step, model);
  add_coded_score(*result_.eval);
  parts_.listener.eval(*result_.eval);
}

void Trainer::add_coded_score(record::EvalRecord& eval) {
  if (!options_.coded_eval) return;
  parts_.engine.code_inferences(true);
  const record::EvalRecord coded = score(false, result_.kept_step, eval.model);
  parts_.engine.code_inferences(false);
  eval.measures["loss_coded"] = coded.loss;
  for (const auto& [name, value] : coded.measures) eval.measures[name + "_coded"] = value;
}

void Trainer::save(int64_t steps_done) {
  control_.saved();
  if (options_.checkpoint.empty()) return;
  parts_.listener.phase(steps_done, "checkpoint");
  save_engine(steps_done);
  ValuesPart own("trainer", [this] { return progress(); }, {});
  ReplicaParts replica(trained());
  save_checkpoint(options_.checkpoint, parts_.mesh.world, replica.and_then(own));
  remove_engine_states();
  if (best_) best_->saved();
  control_.saved();  // what it took does not count
  parts_.listener.saved(steps_done);
}

std::filesystem::path Trainer::engine_state(int64_t steps_done) const {
  return options_.checkpoint.parent_path() /
         fmt::format("engine-{}.rank{}", steps_done, parts_.mesh.world.rank());
}

void Trainer::save_engine(int64_t steps_done) {
  if (!parts_.engine.keeps_state()) return;
  const std::string failure =
      at_every_rank(parts_.mesh.world, [&] { parts_.engine.save_state(engine_state(steps_done)); });
  if (!failure.empty()) throw DataError("{}", failure);
  engine_saved_ = steps_done;
}

void Trainer::restore_engine(int64_t steps_done, Resumption& how) {
  if (!parts_.engine.keeps_state()) return;
  std::string failure = how.resized() ? "the number of workers changed" : "the checkpoint has none";
  if (!how.resized() && steps_done >= 0) {
    failure = at_every_rank(parts_.mesh.world, [&] { parts_.engine.load_state(engine_state(steps_done)); });
  }
  engine_saved_ = steps_done;
  if (failure.empty()) return;
  parts_.engine.forget_state();
  how.note(fmt::format(
      "activation buffers start empty, so each example is sent as on a first visit once more ({})", failure));
}

void Trainer::remove_engine_states() {
  if (!parts_.engine.keeps_state()) return;
  const std::string mine = fmt::format(".rank{}.", parts_.mesh.world.rank());
  std::error_code unlisted;  // what stays does no harm
  for (const auto& entry : std::filesystem::directory_iterator(options_.checkpoint.parent_path(), unlisted)) {
    const std::string name = entry.path().filename().string();
    const bool current = name.starts_with(fmt::format("engine-{}.", engine_saved_));
    if (name.starts_with("engine-") && name.find(mine) != std::string::npos && !current)
      std::filesystem::remove(entry.path(), unlisted);
  }
}

nlohmann::ordered_json Trainer::progress() {
  comm::Meter sent = sent_by_all();
  const double bytes_sent = bytes_before_ + static_cast<double>(sent.total().bytes);
  nlohmann::ordered_json epochs = nlohmann::ordered_json::array();
  for (const auto& epoch : result_.epochs) epochs.push_back(record::to_json(epoch));
  nlohmann::ordered_json progress{
      {"steps_done", result_.steps},
      {"recorded", recorded_},
      {"batch", parts_.loader.global_batch()},
      {"steps_per_epoch", parts_.loader.steps_per_epoch()},
      {"seed", options_.seed},
      {"start_hash", start_hash_},
      {"bytes_sent", bytes_sent},
      {"seconds", result_.seconds},
      {"updates", loop_->updates()},
      {"evals", evals_},
      {"control", control_.state()},
      {"eval", last_eval_ ? record::to_json(*last_eval_) : nlohmann::ordered_json()},
      {"epoch", sums_.epoch},
      {"epoch_loss", sums_.loss},
      {"epoch_count", sums_.count},
      {"epoch_seconds", sums_.seconds},
      {"epochs", epochs},
      {"inputs", options_.inputs},
      {"environment", options_.environment}};
  if (sent_before_) progress["sent"] = (sent += *sent_before_).numbers();
  if (engine_saved_ >= 0) progress["engine"] = engine_saved_;
  if (balance_) progress["shares"] = balance_->shares();
  if (best_) progress["best"] = best_->state();
  return progress;
}

int64_t Trainer::restore() {
  ValuesPart own(
      "trainer", [] { return nlohmann::ordered_json(); },
      [this](const nlohmann::ordered_json& progress, Resumption& how) { go_on_from(progress, how); });
  ReplicaParts replica(trained());
  const Resumption how = restore_checkpoint(options_.checkpoint, parts_.mesh.world, replica.and_then(own));
  parts_.listener.resumed({.step = result_.steps,
                           .recorded = recorded_,
                           .own = loop_->updates(),
                           .evals = evals_,
                           .ranks = how.ranks_now,
                           .notes = how.notes});
  return result_.steps;
}

void Trainer::go_on_from(const nlohmann::ordered_json& progress, Resumption& how) {
  if (progress.at("inputs") != options_.inputs) {
    throw ConfigError("a run resumes with the data and vocabulary it began with: they were {} and are {} now",
                      progress.at("inputs").dump(), options_.inputs.dump());
  }
  if (how.resized()) {
    how.notes.insert(how.notes.begin(),
                     fmt::format("workers were {} and are {} now: {} of {}", how.ranks_before, how.ranks_now,
                                 options_.updates_per_step > 1 ? "updates" : "same global batches",
                                 parts_.loader.global_batch()));
  }
  const int64_t before = progress.at("steps_done");
  result_.steps = converted(before, progress, how);
  recorded_ = progress.at("recorded");
  start_hash_ = progress.at("start_hash");
  sums_ = {.epoch = progress.at("epoch"),
           .loss = progress.at("epoch_loss"),
           .count = progress.at("epoch_count"),
           .seconds = progress.at("epoch_seconds")};
  bytes_before_ = progress.at("bytes_sent");
  // Other versions keep other numbers, or none.
  const auto sent = progress.value("sent", std::vector<double>());
  sent_before_.reset();
  if (sent.size() == sent_.numbers().size()) sent_before_ = comm::Meter::of_numbers(sent);
  result_.seconds = progress.at("seconds");
  loop_->restore_updates(progress.at("updates"));
  if (balance_ && how.resized()) {
    how.note("shares of a batch are found anew");
  } else if (balance_ && progress.contains("shares")) {
    balance_->restore(progress.at("shares"));
    parts_.loader.set_shares(balance_->shares());
  }
  restore_engine(progress.value("engine", int64_t{-1}), how);
  control_.restore(progress.at("control"));
  evals_ = progress.at("evals");
  if (!progress.at("eval").is_null()) {
    last_eval_ = record::eval_from_json(progress.at("eval"));
    eval_step_ = last_eval_->step == before ? result_.steps : -1;
  }
  if (best_) best_->restore(progress.value("best", nlohmann::ordered_json()));
  for (const auto& epoch : progress.at("epochs")) result_.epochs.push_back(record::epoch_from_json(epoch));
  for (const auto& [name, value] : progress.at("environment").items()) {
    const auto now = options_.environment.value(name, nlohmann::ordered_json());
    if (now == value) continue;
    how.note(fmt::format("{} was {} and is {} now, so the run is not bit for bit what it would have been",
                         name, value.dump(), now.dump()));
  }
}

int64_t Trainer::converted(int64_t steps, const nlohmann::ordered_json& progress, Resumption& how) const {
  const int64_t batch = progress.at("batch"), per_epoch = progress.at("steps_per_epoch");
  if (batch == parts_.loader.global_batch()) return steps;
  const int64_t seen = steps % per_epoch * batch, whole = seen / parts_.loader.global_batch();
  if (const int64_t again = seen - whole * parts_.loader.global_batch(); again > 0) {
    how.note(fmt::format("{} example{} of the epoch repeat{}, so that updates are whole", again,
                         again == 1 ? "" : "s", again == 1 ? "s" : ""));
  }
  return steps / per_epoch * parts_.loader.steps_per_epoch() + whole;
}

}  // namespace syncopate::train
