#include "syncopate/run/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/run/build.h"
#include "syncopate/run/device.h"
#include "syncopate/run/fault_injection.h"
#include "syncopate/tasks/setup.h"

namespace syncopate::run {
namespace {

void require_one_of(const char* name, const std::string& value, const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  throw ConfigError("{} must be {}, got \"{}\"", name, fmt::join(choices, ", "), value);
}

void require_balance_fits(const RunSpec& spec) {
  if (spec.train.balance_every < 1)
    throw ConfigError("train.balance_every must be 1 or more, got {}", spec.train.balance_every);
  // RemoteOptimizer a faster worker takes more batches, or its own count weighs its model.
  static const std::set<std::string> together{"gather-scatter", "all-reduce", "ddp", "data-parallel"};
  if (spec.train.balance && spec.strategy.name != "single" && !together.contains(spec.strategy.name)) {
    throw ConfigError("--balance is for workers that make every step together ({}), which those of {} do not",
                      fmt::join(together, ", "), spec.strategy.name);
  }
  if (spec.train.balance && spec.compute.device != "cpu") {
    throw ConfigError("--balance measures workers on CPUs; on a GPU leave it out");
  }
}

}  // namespace

void RunSpec::Task::describe(Fields& fields) {
  fields.add("name", name, fmt::format("what to learn: {}", fmt::join(tasks::task_names(), ", ")), "task");
  fields.add("data", data, "file or folder with the data; empty: the built-in data of the task", "data");
  fields.add("text", text, "csv, mlm, clm: the column with the text", "text");
  fields.add("text_pair", text_pair, "csv: the column with a second text, if there is one", "text-pair");
  fields.add("label", label, "csv: the column with the label", "label");
  fields.add("max_length", max_length,
             "tokens of an example, special ones counted; 0: 128, and 320 for questions", "max-length");
  fields.add("shuffle", shuffle, "a new order every epoch; false keeps the file's order");
  fields.add("limit", limit, "train on a seeded subset of this many examples; 0: all", "limit");
  fields.add("test_limit", test_limit, "evaluate on the first so many test examples; 0: all");
  fields.add("mask_rate", mask_rate, "mlm: share of the words that are asked for");
  fields.add("whole_words", whole_words, "mlm: mask all pieces of a word together");
  fields.add("documents", documents,
             "mlm, clm: a document is a line, or what stands between blank lines: auto, line, blank");
  fields.add("stride", stride, "squad: pieces that two windows of a long text share");
  fields.add("augment", augment, "images: random crops and flips in training");
}

void RunSpec::Model::describe(Fields& fields) {
  fields.add("name", name,
             fmt::format("Hugging Face folder, or a preset (empty: the task's smallest): {}",
                         fmt::join(tasks::model_names(), ", ")),
             "model");
  fields.add("init_from", init_from,
             "start from this run or model folder with a fresh head; --model may be left out", "init-from");
  fields.add("vocab", vocab,
             "vocab.txt (GPT: vocab.json); empty: the model folder's, or one built from the training text",
             "vocab");
  fields.add("vocab_size", vocab_size, "words of a vocabulary built from the training text");
  fields.add("dropout", dropout, "share of activations dropped in training", "dropout");
  fields.add("inner_dropout", inner_dropout, "dropout inside the feed-forward block; BERT has none");
  fields.add("batch_norm", batch_norm,
             "images: statistics of each worker (local), of the first (broadcast) or of all together (sync)");
}

void RunSpec::Strategy::describe(Fields& fields) {
  fields.add("name", name, fmt::format("how workers synchronise: {}", fmt::join(strategy_names(), ", ")),
             "strategy");
  fields.add("whole", whole,
             "gather-scatter, all-reduce: one call over all gradients, not one per parameter");
  fields.add("bucket_mib", bucket_mib, "ddp, data-parallel: size of a bucket of gradients");
  fields.add("first_bucket_mib", first_bucket_mib,
             "ddp: size of the first bucket, small so that it starts early");
  fields.add("sparse_rows", sparse_rows,
             "ddp, parameter-server: of embedding tables exchange only the rows that were read");
  fields.add("overlap", overlap, "ddp: start buckets during the backward pass");
  fields.add("every", every, "local-sgd, diloco: optimizer steps between averages");
  fields.add("overlap_average", overlap_average,
             "local-sgd: average behind the next steps (half of strategy.every, or strategy.delay)");
  fields.add("post_local_start", post_local_start,
             "local-sgd: the step at which local steps begin; before it workers are synchronous");
  fields.add("moments", moments,
             "local-sgd, diloco: at an average the optimizer's moments: keep, average, reset");
  fields.add("outer_lr", outer_lr, "diloco: rate of the outer optimizer");
  fields.add("outer_momentum", outer_momentum, "diloco: momentum of the outer optimizer");
  fields.add("outer_nesterov", outer_nesterov,
             "diloco: Nesterov's momentum; false: plain, which is block momentum (BMUF)");
  fields.add("fragments", fragments, "diloco: parts of the model that are averaged in turn");
  fields.add("delay", delay,
             "local-sgd, diloco: steps that an average takes behind the training; 0: workers wait for it");
  fields.add("mixing", mixing, "diloco: share of the local values kept when an average arrives");
  fields.add("staleness", staleness,
             "parameter-server: updates that a worker may be ahead of the slowest: a number, or inf");
  fields.add("staleness_lr", staleness_lr, "parameter-server: divide the rate by a push's staleness");
  fields.add("servers", servers, "parameter-server: processes that hold the model");
  fields.add("state", state, "hogwild: the optimizer's state is each process's own, or shared");
}

void RunSpec::Codec::describe(Fields& fields) {
  fields.add("name", name, fmt::format("how gradients travel: {}", fmt::join(codec_names(), ", ")), "codec");
  fields.add("ratio", ratio, "top-k, random-k: share of the values that travel");
  fields.add("rank", rank, "power-sgd: rank of what stands for a matrix");
  fields.add("warmup", warmup,
             "one-bit, power-sgd: share of the steps, or steps if 1 or more, before compression");
  fields.add("error_feedback", error_feedback,
             "what was not sent is added to the next gradient: auto (where it is needed), true, false");
}

void RunSpec::Optim::describe(Fields& fields) {
  fields.add("name", name, fmt::format("{}", fmt::join(optim::optimizer_names(), ", ")), "optimizer");
  fields.add("lr", lr, "peak learning rate", "lr");
  fields.add("weight_decay", weight_decay, "on matrices, not on biases and LayerNorm", "weight-decay");
  fields.add("beta1", beta1, "adamw, lamb: decay of the first moment");
  fields.add("beta2", beta2, "adamw, lamb: decay of the second moment");
  fields.add("eps", eps, "adamw, lamb: added to the root of the second moment; lars: to a norm");
  fields.add("momentum", momentum, "sgd, lars: momentum");
  fields.add("nesterov", nesterov, "sgd: step from where the momentum leads");
  fields.add("trust", trust, "lars: how far a tensor moves, in units of its norm, at a rate of 1");
  fields.add("warmup", warmup, "share of the steps, or steps if above 1, over which the rate rises",
             "warmup");
  fields.add("schedule", schedule,
             fmt::format("after the warm-up: {}", fmt::join(optim::schedule_names(), ", ")), "schedule");
  fields.add("milestones", milestones, "schedule step: where the rate drops, shares of the steps or steps");
  fields.add("gamma", gamma, "schedule step: what the rate is multiplied by there");
  fields.add("cycle", cycle, "schedule cyclic: its period, a share of the steps or steps");
  fields.add("cycle_ratio", cycle_ratio, "schedule cyclic: highest over lowest rate");
  fields.add("power", power, "schedule polynomial: its power");
  fields.add("final_share", final_share, "schedule polynomial: the last rate, in units of the peak");
  fields.add("scaling", scaling,
             "peak rate for the batch of the run: none, linear or sqrt in batch / base_batch", "lr-scaling");
  fields.add("base_batch", base_batch, "examples per step that --lr is meant for", "base-batch");
  fields.add("clip", clip, "limit of the global gradient norm; 0: off", "clip");
  fields.add("label_smoothing", label_smoothing, "share of a label that is spread over all classes",
             "label-smoothing");
  fields.add("plateau_factor", plateau_factor,
             "what the rate is multiplied by when evaluations get no better; 1: off");
  fields.add("plateau_patience", plateau_patience,
             "evaluations in a row without a better test loss before that");
}

void RunSpec::Train::describe(Fields& fields) {
  fields.add("batch_size", batch_size,
             "examples per worker and micro-batch; 0: 16, unless global-batch is given", "batch-size");
  fields.add("global_batch", global_batch,
             "examples per step over all workers, divided among them; 0: from batch-size", "global-batch");
  fields.add("accumulate", accumulate, "micro-batches per optimizer step", "accumulate");
  fields.add("epochs", epochs, "passes over the training data; 0: one, unless steps are given", "epochs");
  fields.add("steps", steps, "optimizer steps, instead of epochs; 0: as epochs say", "steps");
  fields.add("seed", seed, "decides start, order and dropout", "seed");
  fields.add("eval_every", eval_every, "steps between evaluations, or: epoch", "eval-every");
  fields.add("save_every", save_every, "steps between checkpoints; 0: at the end of every epoch",
             "save-every");
  fields.add("eval_batch", eval_batch, "examples per batch of an evaluation; 0: as suits the task");
  fields.add("patience", patience,
             "end after so many evaluations in a row without a better test loss; 0: never", "patience");
  fields.add("time_limit", time_limit, "seconds after which the run ends in order; 0: none", "time-limit");
  fields.add("balance", balance, "give each worker a share of the global batch that matches its speed",
             "balance");
  fields.add("balance_every", balance_every, "--balance: steps between looks at the workers' speeds");
}

void RunSpec::Comm::describe(Fields& fields) {
  fields.add("workers", workers, "processes that train together", "workers");
  fields.add("timeout", timeout, "seconds after which a worker that does not answer is given up", "timeout");
  fields.add("fault", fault,
             "RANK:STEP:PHASE:kill|stop|hang: that worker fails there, to see what the others do");
  fields.add("slow", slow, "RANK:FACTOR: that worker takes FACTOR times as long, to see what the others do");
}

void RunSpec::Compute::describe(Fields& fields) {
  fields.add("threads", threads, "per worker; 0: one when workers share the machine, else all cores",
             "threads");
  fields.add("device", device, "cpu, cuda or cuda:1", "device");
  fields.add("precision", precision, "of matrix products: fp32, bf16 or fp16; weights stay fp32",
             "precision");
  fields.add("loader_threads", loader_threads, "threads that prepare batches");
}

void RunSpec::describe(Fields& fields) {
  fields.group("task", task);
  fields.group("model", model);
  fields.group("strategy", strategy);
  fields.group("codec", codec);
  fields.group("optim", optim);
  fields.group("train", train);
  fields.group("comm", comm);
  fields.group("compute", compute);
}

Fields RunSpec::fields() {
  Fields fields;
  describe(fields);
  return fields;
}

void RunSpec::complete() {
  if (model.name.empty() && model.init_from.empty()) model.name = tasks::family_of(task.name).models.front();
}

std::string RunSpec::rhythm() const {
  return codec.name == "none" ? strategy.name : fmt::format("{}, {}", strategy.name, codec.name);
}

std::string RunSpec::name() {
  const std::filesystem::path folder(model.init_from.empty() ? model.name : model.init_from);
  std::string short_model =
      folder.filename().empty() ? folder.parent_path().filename().string() : folder.filename().string();
  return fmt::format("{}-{}-{}-{}w-{}", task.name, short_model, strategy.name, comm.workers,
                     fields().hash().substr(0, 8));
}

bool RunSpec::runs_free() const {
  return strategy.name == "hogwild" || (strategy.name == "parameter-server" && staleness_bound() != 0);
}

int64_t RunSpec::servers() const { return strategy.name == "parameter-server" ? strategy.servers : 0; }

int64_t RunSpec::staleness_bound() const {
  if (strategy.staleness == "inf") return -1;
  const auto bound = parse_integer(strategy.staleness);
  if (!bound || *bound < 0) {
    throw ConfigError("strategy.staleness must be 0 or more, or inf, got \"{}\"", strategy.staleness);
  }
  return *bound;
}

double RunSpec::slowness_of(int rank) const {
  if (comm.slow.empty()) return 1;
  const auto parts = split(comm.slow, ':');
  const auto who = parts.size() == 2 ? parse_integer(parts[0]) : std::nullopt;
  const auto factor = parts.size() == 2 ? parse_number(parts[1]) : std::nullopt;
  if (!who || *who < 0 || !factor || !(*factor >= 1 && *factor <= 1000)) {
    throw ConfigError("comm.slow must be RANK:FACTOR with a factor from 1 to 1000, got \"{}\"", comm.slow);
  }
  if (*who >= comm.workers) {
    throw ConfigError("comm.slow={} names a worker that does not exist; there are {}", comm.slow,
                      comm.workers);
  }
  return *who == rank ? *factor : 1;
}

int64_t RunSpec::examples_per_step() const {
  if (train.accumulate < 1) throw ConfigError("--accumulate must be 1 or more, got {}", train.accumulate);
  if (train.batch_size < 0) throw ConfigError("--batch-size must be 1 or more, got {}", train.batch_size);
  if (train.global_batch < 0)
    throw ConfigError("--global-batch must be 1 or more, got {}", train.global_batch);
  if (train.batch_size > 0 && train.global_batch > 0) {
    throw ConfigError("--batch-size (per worker) and --global-batch exclude each other; give one of them");
  }
  constexpr int64_t kDefaultBatch = 16;
  constexpr double kMost = 1e9;
  const int64_t batch = train.batch_size > 0 ? train.batch_size : kDefaultBatch;
  const auto together = [](auto... factors) { return (static_cast<double>(factors) * ...); };
  if (together(train.global_batch > 0 ? 1 : batch, comm.workers, train.accumulate) > kMost ||
      train.global_batch > kMost) {
    throw ConfigError(
        "a step of more than {:.0f} examples is too large; make --accumulate or the batch smaller", kMost);
  }
  if (train.global_batch > 0) {
    if (train.global_batch < comm.workers * train.accumulate) {
      throw ConfigError(
          "--global-batch {} is less than one example per worker and micro-batch ({} x {}); make it larger",
          train.global_batch, comm.workers, train.accumulate);
    }
    return train.global_batch;
  }
  return batch * comm.workers * train.accumulate;
}

int64_t RunSpec::max_length() const {
  return task.max_length > 0 ? task.max_length : tasks::family_of(task.name).max_length;
}

int64_t RunSpec::eval_batch() const {
  return train.eval_batch > 0 ? train.eval_batch : tasks::family_of(task.name).eval_batch;
}

void RunSpec::validate() const {
  if (comm.workers < 1) throw ConfigError("--workers must be 1 or more, got {}", comm.workers);
  if (!(comm.timeout > 0) || !std::isfinite(comm.timeout)) {
    throw ConfigError("--timeout must be above 0 seconds, got {}", comm.timeout);
  }
  if (const auto fault = parse_fault(comm.fault); fault && fault->rank >= comm.workers + servers()) {
    throw ConfigError("comm.fault={} names a worker that does not exist; there are {}", comm.fault,
                      comm.workers + servers());
  }
  require_strategy(strategy.name);
  if (strategy.name == "single" && comm.workers > 1) {
    throw ConfigError(
        "the strategy single trains with one worker, got --workers {}; choose another strategy or "
        "--workers 1",
        comm.workers);
  }
  if (strategy.every < 1) throw ConfigError("strategy.every must be 1 or more, got {}", strategy.every);
  require_one_of("strategy.moments", strategy.moments, {"keep", "average", "reset"});
  require_one_of("strategy.state", strategy.state, {"own", "shared"});
  staleness_bound();
  slowness_of(0);
  if (strategy.servers < 1) throw ConfigError("strategy.servers must be 1 or more, got {}", strategy.servers);
  if (servers() > comm.workers) {
    throw ConfigError("strategy.servers={} are more than the {} worker{} they serve; use fewer servers",
                      servers(), comm.workers, comm.workers == 1 ? "" : "s");
  }
  if (runs_free() && comm.workers > 1 && model.batch_norm != "local") {
    throw ConfigError(
        "model.batch_norm={} needs workers that keep in step, which those of {} do not; use local",
        model.batch_norm, strategy.name);
  }
  require_one_of("codec.error_feedback", codec.error_feedback, {"auto", "true", "false"});
  require_codec(*this);
  require_settings(*this);
  require_balance_fits(*this);
  if (train.patience < 0) throw ConfigError("--patience must be 0 (off) or more, got {}", train.patience);
  if (!(train.time_limit >= 0) || !std::isfinite(train.time_limit))
    throw ConfigError("--time-limit must be 0 (none) or more seconds, got {}", train.time_limit);
  if (!(optim.plateau_factor > 0 && optim.plateau_factor <= 1)) {
    throw ConfigError("optim.plateau_factor must be above 0 and at most 1 (off), got {}",
                      optim.plateau_factor);
  }
  if (optim.plateau_patience < 1)
    throw ConfigError("optim.plateau_patience must be 1 or more, got {}", optim.plateau_patience);
  examples_per_step();
  if (train.epochs < 0 || train.steps < 0) throw ConfigError("--epochs and --steps must be 1 or more");
  if (train.epochs > 0 && train.steps > 0)
    throw ConfigError("--epochs and --steps exclude each other; give one of them");
  if (train.save_every < 0) throw ConfigError("--save-every must be 0 or more, got {}", train.save_every);
  if (train.eval_batch < 0) throw ConfigError("train.eval_batch must be 0 or more, got {}", train.eval_batch);
  if (train.eval_every != "epoch" && parse_integer(train.eval_every).value_or(0) < 1) {
    throw ConfigError("--eval-every must be a number of steps or \"epoch\", got \"{}\"", train.eval_every);
  }
  if (task.max_length != 0 && (task.max_length < 4 || task.max_length > 1024)) {
    throw ConfigError("--max-length must be between 4 and 1024 tokens, got {}", task.max_length);
  }
  if (!(task.mask_rate > 0 && task.mask_rate < 1)) {
    throw ConfigError("task.mask_rate must be above 0 and below 1, got {}", task.mask_rate);
  }
  if (task.stride < 0) throw ConfigError("task.stride must be 0 or more, got {}", task.stride);
  require_one_of("task.documents", task.documents, {"auto", "line", "blank"});
  require_one_of("model.batch_norm", model.batch_norm, {"local", "broadcast", "sync"});
  if (runs_in_one_process(strategy.name) && model.batch_norm == "sync" && compute.device != "cpu") {
    // One thread of autograd computes all gradients of a GPU: a replica that waited there for another would
    // wait for itself.
    throw ConfigError("model.batch_norm=sync cannot be used with {} on a GPU; use ddp", strategy.name);
  }
  if (!(optim.label_smoothing >= 0 && optim.label_smoothing < 1)) {
    throw ConfigError("--label-smoothing must be at least 0 and below 1, got {}", optim.label_smoothing);
  }
  if (compute.loader_threads < 1)
    throw ConfigError("compute.loader_threads must be 1 or more, got {}", compute.loader_threads);
  tensor::parse_precision(compute.precision);
  parse_device(compute.device);
  tasks::family_of(task.name);
  for (const auto& [name, value] :
       {std::pair{"--dropout", model.dropout}, {"model.inner_dropout", model.inner_dropout}}) {
    if (!(value >= 0 && value < 1))
      throw ConfigError("{} must be at least 0 and below 1, got {}", name, value);
  }
  if (!(optim.clip >= 0)) throw ConfigError("--clip must be 0 (off) or more, got {}", optim.clip);
  if (compute.threads < 0) throw ConfigError("--threads must be 1 or more, got {}", compute.threads);
  if (task.limit < 0 || task.test_limit < 0)
    throw ConfigError("task.limit and task.test_limit must be 0 or more");
}

bool may_change_on_resume(const std::string& field) {
  static const std::set<std::string> free{"comm.timeout",     "comm.fault",       "comm.slow",
                                          "strategy.servers", "compute.threads",  "compute.loader_threads",
                                          "train.save_every", "train.eval_batch", "train.eval_every",
                                          "train.steps",      "train.epochs",     "task.data",
                                          "model.vocab",      "train.patience",   "train.time_limit"};
  return free.contains(field);
}

}  // namespace syncopate::run
