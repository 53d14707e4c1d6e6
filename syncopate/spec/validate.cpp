// What no run could use is refused here, before anything is started.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/spec/fault.h"
#include "syncopate/spec/run_spec.h"
#include "syncopate/spec/strategies.h"
#include "syncopate/spec/tasks.h"

namespace syncopate::spec {
namespace {

void require_one_of(const char* name, const std::string& value, const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  throw ConfigError("{} must be {}, got \"{}\"", name, fmt::join(choices, ", "), value);
}

void require_at_least(const char* name, int64_t value, int64_t least) {
  if (value < least) throw ConfigError("{} must be {} or more, got {}", name, least, value);
}

/// At least `low` and below `high`.
void require_between(const char* name, double value, double low, double high) {
  if (!(value >= low && value < high))
    throw ConfigError("{} must be at least {} and below {}, got {}", name, low, high, value);
}

void require_above_zero(const char* name, double value) {
  if (!(value > 0) || !std::isfinite(value)) throw ConfigError("{} must be above 0, got {}", name, value);
}

/// The strategies that `fits`, for a sentence.
template <typename Fits>
std::string strategies_that(const Fits& fits) {
  std::vector<std::string> names;
  for (const StrategyInfo& info : strategies()) {
    if (fits(info)) names.emplace_back(info.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void require_workers(const RunSpec& spec) {
  require_at_least("--workers", spec.comm.workers, 1);
  require_one_of("--backend", spec.comm.backend, {"auto", "gloo", "shm", "shm+gloo", "mpi", "nccl"});
  if (!(spec.comm.timeout > 0) || !std::isfinite(spec.comm.timeout)) {
    throw ConfigError("--timeout must be above 0 seconds, got {}", spec.comm.timeout);
  }
  if (spec.comm.backend == "nccl" && spec.compute.device == "cpu")
    throw ConfigError("--backend nccl is for workers on GPUs; use --device cuda or --backend auto");
  if (spec.comm.backend == "nccl" && spec.servers() > 0)
    throw ConfigError("--backend nccl is for workers on GPUs, and servers have none; use --backend auto");
  const int64_t processes = spec.comm.workers + spec.servers();
  if (const auto fault = parse_fault(spec.comm.fault); fault && fault->rank >= processes) {
    throw ConfigError("comm.fault={} names a worker that does not exist; there are {}", spec.comm.fault,
                      processes);
  }
  spec.slowness_of(0);
}

void require_servers(const RunSpec& spec) {
  spec.staleness_bound();
  require_at_least("strategy.servers", spec.strategy.servers, 1);
  if (spec.servers() > spec.comm.workers) {
    throw ConfigError("strategy.servers={} are more than the {} worker{} they serve; use fewer servers",
                      spec.servers(), spec.comm.workers, spec.comm.workers == 1 ? "" : "s");
  }
}

/// parallel::LocalSteps and DiLoCo check the same of their options.
void require_local_steps(const RunSpec& spec) {
  const RunSpec::Strategy& s = spec.strategy;
  if (strategy_info(s.name).rhythm != Rhythm::kLocal) return;
  if (spec.model.batch_norm != "local") {
    throw ConfigError(
        "model.batch_norm={} makes workers talk in every step, and those of {} do not; use "
        "model.batch_norm=local",
        spec.model.batch_norm, s.name);
  }
  require_at_least("strategy.fragments", s.fragments, 1);
  if (s.every % s.fragments != 0) {
    throw ConfigError("strategy.every must be a multiple of strategy.fragments: {} is not a multiple of {}",
                      s.every, s.fragments);
  }
  if (s.delay < 0 || s.delay >= s.every) {
    throw ConfigError("strategy.delay must be at least 0 and below strategy.every ({}), got {}", s.every,
                      s.delay);
  }
  require_at_least("strategy.post_local_start", s.post_local_start, 0);
  if (s.overlap_average && s.every < 2) {
    throw ConfigError("strategy.overlap_average needs strategy.every of 2 or more, got {}", s.every);
  }
  if (s.moments == "reset" && s.fragments > 1) {
    throw ConfigError(
        "strategy.moments=reset needs strategy.fragments=1: an optimizer counts its steps for the whole "
        "model");
  }
  require_between("strategy.mixing", s.mixing, 0, 1);
  require_between("strategy.outer_momentum", s.outer_momentum, 0, 1);
  constexpr double kFastest = 1e6;
  if (!(s.outer_lr > 0 && s.outer_lr <= kFastest)) {
    throw ConfigError("strategy.outer_lr must be above 0 and at most {:.0f}, got {}", kFastest, s.outer_lr);
  }
}

void require_strategy(const RunSpec& spec) {
  const RunSpec::Strategy& s = spec.strategy;
  const StrategyInfo& info = strategy_info(s.name);
  if (info.one_worker && spec.replicas() > 1 && spec.pipeline.stages > 1) {
    throw ConfigError(
        "the strategy {} trains one replica; with --stages {} use --workers {} or another strategy", s.name,
        spec.pipeline.stages, spec.pipeline.stages);
  }
  if (info.one_worker && spec.replicas() > 1) {
    throw ConfigError(
        "the strategy {} trains with one worker, got --workers {}; choose another strategy or "
        "--workers 1",
        s.name, spec.comm.workers);
  }
  require_at_least("strategy.every", s.every, 1);
  require_one_of("strategy.moments", s.moments, {"keep", "average", "reset"});
  require_one_of("strategy.state", s.state, {"own", "shared"});
  require_above_zero("strategy.bucket_mib", s.bucket_mib);
  require_above_zero("strategy.first_bucket_mib", s.first_bucket_mib);
  require_servers(spec);
  require_local_steps(spec);
}

/// Blocks are counted where the model is known.
void require_pipeline(const RunSpec& spec) {
  const RunSpec::Pipeline& pipeline = spec.pipeline;
  require_at_least("--stages", pipeline.stages, 1);
  if (spec.comm.workers % pipeline.stages != 0) {
    const int64_t below = spec.comm.workers / pipeline.stages * pipeline.stages,
                  above = below + pipeline.stages;
    throw ConfigError("--stages {} needs a multiple of {} workers, got {}; use --workers {}{}",
                      pipeline.stages, pipeline.stages, spec.comm.workers,
                      below > 0 ? fmt::format("{} or ", below) : "", above);
  }
  if (pipeline.stages == 1) return;
  const auto keeps_in_step = [](const StrategyInfo& info) {
    return info.rhythm != Rhythm::kFree && !info.in_one_process;
  };
  if (!keeps_in_step(strategy_info(spec.strategy.name))) {
    throw ConfigError("the strategy {} cannot be used with --stages; use one of: {}", spec.strategy.name,
                      strategies_that(keeps_in_step));
  }
  require_one_of("pipeline.schedule", pipeline.schedule, {"1f1b", "gpipe"});
  require_at_least("pipeline.micro_batches", pipeline.micro_batches, 0);
  spec.micro_batches();
  spec.layout();
  if (!pipeline.cut.empty()) {
    const std::vector<std::string_view> parts = split(pipeline.cut, ',');
    const bool numbers = std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
      return parse_integer(part).value_or(0) >= 1;
    });
    if (!numbers || static_cast<int64_t>(parts.size()) != pipeline.stages) {
      throw ConfigError(
          "pipeline.cut must be the number of blocks of each of the {} stages, such as 3,5,4; got {}",
          pipeline.stages, pipeline.cut);
    }
  }
  if (spec.train.balance) throw ConfigError("--balance measures whole workers; leave it out with --stages");
  if (spec.train.noise_scale)
    throw ConfigError("train.noise_scale looks at whole gradients; leave it out with --stages");
}

void require_activation(const RunSpec& spec) {
  const RunSpec::Activation& activation = spec.activation;
  const ActivationCodecInfo& codec = activation_codec_info(activation.codec);
  for (const auto& [name, bits] : {std::pair{"activation.forward_bits", activation.forward_bits},
                                   {"activation.backward_bits", activation.backward_bits}}) {
    if (bits < 1 || bits > 8) throw ConfigError("{} must be from 1 to 8, got {}", name, bits);
  }
  require_one_of("activation.rounding", activation.rounding, {"nearest", "stochastic"});
  require_one_of("activation.first_visit", activation.first_visit, {"full", "half", "int8"});
  require_one_of("activation.buffer", activation.buffer, {"memory", "file"});
  require_one_of("activation.store", activation.store, {"fp32", "fp16", "int8", "int4"});
  require_one_of("activation.eval", activation.eval, {"plain", "coded", "both"});
  require_above_zero("activation.buffer_gib", activation.buffer_gib);
  const TaskFamily& family = task_family(spec.task.name);
  const std::vector<std::string> heeded = settings_of_task(spec.task.name);
  const bool may_stop = std::find(heeded.begin(), heeded.end(), "task.augment") != heeded.end();
  if (codec.remembers && !examples_come_back(spec)) {
    throw ConfigError(
        "--activation-codec {} needs examples that come back as they were, and {} of {} are drawn anew in "
        "every "
        "epoch; use --activation-codec direct{}",
        codec.name, family.drawn, spec.task.name, may_stop ? " or task.augment=false" : "");
  }
}

void require_codec(const RunSpec& spec) {
  const StrategyInfo& strategy = strategy_info(spec.strategy.name);
  const CodecInfo& codec = codec_info(spec.codec.name);
  const OptimizerInfo& optimizer = optimizer_info(spec.optim.name);
  require_one_of("codec.error_feedback", spec.codec.error_feedback, {"auto", "true", "false"});
  if (codec.packing == Packing::kNone) return;
  if (!strategy.takes_codec) {
    throw ConfigError("the strategy {} cannot use --codec {}; choose ddp or another of: {}; or --codec none",
                      strategy.name, codec.name,
                      strategies_that([](const StrategyInfo& other) { return other.takes_codec; }));
  }
  if (codec.packing == Packing::kSigns && strategy.rhythm == Rhythm::kLocal) {
    throw ConfigError("the codec {} is for the strategies {}; for {} choose --codec int4", codec.name,
                      strategies_that([](const StrategyInfo& other) {
                        return other.takes_codec && other.rhythm == Rhythm::kTogether;
                      }),
                      strategy.name);
  }
  if (codec.packing == Packing::kSigns && !optimizer.supports_one_bit) {
    std::vector<std::string> fitting;
    for (const OptimizerInfo& other : optimizers()) {
      if (other.supports_one_bit) fitting.emplace_back(other.name);
    }
    throw ConfigError("the codec {} needs --optimizer {}, got {}", codec.name, fmt::join(fitting, " or "),
                      optimizer.name);
  }
  // Gradients in the loss scale, which begins at 65,536, would be cut off at fp16's end without anybody
  // noticing.
  const bool sends_gradients = !strategy.sends_parameters || spec.strategy.post_local_start > 0;
  if (!codec.holds_loss_scale && spec.compute.precision == "fp16" && sends_gradients) {
    throw ConfigError(
        "--codec fp16 cannot hold the scaled gradients of --precision fp16; use --codec bf16 or --precision "
        "bf16");
  }
  if (!(spec.codec.ratio > 0 && spec.codec.ratio <= 1)) {
    throw ConfigError("codec.ratio must be above 0 and at most 1, got {}", spec.codec.ratio);
  }
  require_at_least("codec.rank", spec.codec.rank, 1);
  if (!(spec.codec.warmup >= 0) || !std::isfinite(spec.codec.warmup)) {
    throw ConfigError(
        "codec.warmup must be 0 or more (a fraction of the steps, or steps if 1 or more), got {}",
        spec.codec.warmup);
  }
}

void require_batch_norm(const RunSpec& spec) {
  const StrategyInfo& strategy = strategy_info(spec.strategy.name);
  require_one_of("model.batch_norm", spec.model.batch_norm, {"local", "broadcast", "sync"});
  if (spec.runs_free() && spec.comm.workers > 1 && spec.model.batch_norm != "local") {
    throw ConfigError(
        "model.batch_norm={} needs workers that keep in step, which those of {} do not; use local",
        spec.model.batch_norm, strategy.name);
  }
  if (strategy.in_one_process && spec.model.batch_norm == "sync" && spec.compute.device != "cpu") {
    // One thread of autograd computes all gradients of a GPU: a replica that waited there for another would
    // wait for itself.
    throw ConfigError("model.batch_norm=sync cannot be used with {} on a GPU; use ddp", strategy.name);
  }
}

void require_balance(const RunSpec& spec) {
  require_at_least("train.balance_every", spec.train.balance_every, 1);
  if (!spec.train.balance) return;
  // Elsewhere a faster worker takes more batches, or its own count weighs its model.
  const auto balances = [](const StrategyInfo& info) {
    return info.rhythm == Rhythm::kTogether && !info.one_worker;
  };
  const StrategyInfo& strategy = strategy_info(spec.strategy.name);
  if (!strategy.one_worker && !balances(strategy)) {
    throw ConfigError("--balance is for workers that make every step together ({}), which those of {} do not",
                      strategies_that(balances), strategy.name);
  }
  if (spec.compute.device != "cpu") {
    throw ConfigError("--balance measures workers on CPUs; on a GPU leave it out");
  }
}

void require_training(const RunSpec& spec) {
  const RunSpec::Train& train = spec.train;
  spec.examples_per_step();
  if (train.patience < 0) throw ConfigError("--patience must be 0 (off) or more, got {}", train.patience);
  if (!(train.time_limit >= 0) || !std::isfinite(train.time_limit))
    throw ConfigError("--time-limit must be 0 (none) or more seconds, got {}", train.time_limit);
  if (train.epochs < 0 || train.steps < 0) throw ConfigError("--epochs and --steps must be 1 or more");
  if (train.epochs > 0 && train.steps > 0)
    throw ConfigError("--epochs and --steps exclude each other; give one of them");
  require_one_of("--keep", train.keep, {"auto", "best", "last"});
  const RunSpec::Validation validation = spec.validation();
  if (spec.chooses() && !validation.on()) {
    throw ConfigError(
        "{} would choose by the test split without a validation split; give a share, --validation 0.05, or "
        "take --validation off away",
        train.patience > 0  ? "--patience"
        : spec.keeps_best() ? "--keep best"
                            : "optim.plateau_factor");
  }
  spec.saving();
  require_at_least("train.eval_batch", train.eval_batch, 0);
  if (train.eval_every != "epoch" && parse_integer(train.eval_every).value_or(0) < 1) {
    throw ConfigError("--eval-every must be a number of steps or \"epoch\", got \"{}\"", train.eval_every);
  }
  require_balance(spec);
}

void require_known(const char* kind, const std::string& name, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw ConfigError("unknown {} \"{}\"{}", kind, name, suggestion(name, names));
}

void require_that(bool holds, const char* name, const char* expected, double value) {
  if (!holds || !std::isfinite(value)) throw ConfigError("{} must be {}, got {}", name, expected, value);
}

/// optim::Schedule checks the same of its options.
void require_schedule(const RunSpec::Optim& optim) {
  require_known("schedule", optim.schedule, schedule_names());
  require_that(optim.lr >= 0, "--lr", "a number of 0 or more", optim.lr);
  require_that(optim.warmup >= 0, "--warmup", "0 or more (a fraction of the steps, or steps if above 1)",
               optim.warmup);
  if (optim.schedule == "step") {
    require_above_zero("optim.gamma", optim.gamma);
  } else if (optim.schedule == "cyclic") {
    require_above_zero("optim.cycle", optim.cycle);
    require_that(optim.cycle_ratio >= 1, "optim.cycle_ratio", "1 or more", optim.cycle_ratio);
  } else if (optim.schedule == "polynomial") {
    require_above_zero("optim.power", optim.power);
    require_that(optim.final_share >= 0 && optim.final_share <= 1, "optim.final_share", "from 0 to 1",
                 optim.final_share);
  }
  require_known("scaling of the learning rate", optim.scaling, scaling_names());
  if (optim.scaling != "none") require_at_least("optim.base_batch", optim.base_batch, 1);
}

void require_optimizer(const RunSpec::Optim& optim) {
  optimizer_info(optim.name);
  require_between("optim.weight_decay", optim.weight_decay, 0, 1e6);
  require_between("optim.beta1", optim.beta1, 0, 1);
  require_between("optim.beta2", optim.beta2, 0, 1);
  require_between("optim.momentum", optim.momentum, 0, 1);
  require_above_zero("optim.eps", optim.eps);
  require_above_zero("optim.trust", optim.trust);
  if (optim.nesterov && !optimizer_info(optim.name).nesterov) {
    throw ConfigError("optim.nesterov is for sgd, not for {}; leave it out", optim.name);
  }
  if (optim.nesterov && optim.momentum == 0) {
    throw ConfigError("optim.nesterov needs a momentum above 0; set optim.momentum");
  }
  require_schedule(optim);
  if (!(optim.plateau_factor > 0 && optim.plateau_factor <= 1)) {
    throw ConfigError("optim.plateau_factor must be above 0 and at most 1 (off), got {}",
                      optim.plateau_factor);
  }
  require_at_least("optim.plateau_patience", optim.plateau_patience, 1);
  require_between("--label-smoothing", optim.label_smoothing, 0, 1);
  if (!(optim.clip >= 0)) throw ConfigError("--clip must be 0 (off) or more, got {}", optim.clip);
}

void require_task(const RunSpec& spec) {
  const RunSpec::Task& task = spec.task;
  task_family(task.name);
  if (task.max_length != 0 && (task.max_length < 4 || task.max_length > 1024)) {
    throw ConfigError("--max-length must be between 4 and 1024 tokens, got {}", task.max_length);
  }
  if (!(task.mask_rate > 0 && task.mask_rate < 1)) {
    throw ConfigError("task.mask_rate must be above 0 and below 1, got {}", task.mask_rate);
  }
  require_at_least("task.stride", task.stride, 0);
  require_one_of("task.documents", task.documents, {"auto", "line", "blank"});
  if (task.encoding.empty()) throw ConfigError("--encoding is empty; give utf-8, latin-1 or another");
  if (task.separator != "auto" && task.separator != "tab" && task.separator != "\\t" &&
      task.separator.size() != 1) {
    throw ConfigError("--separator must be auto, tab or one character such as ; or |, got \"{}\"",
                      task.separator);
  }
  if (task.limit < 0 || task.test_limit < 0)
    throw ConfigError("task.limit and task.test_limit must be 0 or more");
  require_between("--dropout", spec.model.dropout, 0, 1);
  require_between("model.inner_dropout", spec.model.inner_dropout, 0, 1);
}

void require_compute(const RunSpec::Compute& compute) {
  require_at_least("compute.loader_threads", compute.loader_threads, 1);
  require_known("precision", compute.precision, precision_names());
  if (compute.threads < 0) throw ConfigError("--threads must be 1 or more, got {}", compute.threads);
}

}  // namespace

void RunSpec::validate() const {
  strategy_info(strategy.name);  // first: most of the rest asks what it is
  require_workers(*this);
  require_pipeline(*this);
  require_strategy(*this);
  require_codec(*this);
  require_batch_norm(*this);
  require_training(*this);
  require_optimizer(optim);
  require_task(*this);
  require_activation(*this);
  require_above_zero("--scale", network.scale);
  require_compute(compute);
}

}  // namespace syncopate::spec
