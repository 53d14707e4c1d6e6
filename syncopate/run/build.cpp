#include "syncopate/run/build.h"

#include <algorithm>
#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/inproc.h"
#include "syncopate/optim/remote_optimizer.h"
#include "syncopate/parallel/averagers/all_reduce.h"
#include "syncopate/parallel/averagers/coded.h"
#include "syncopate/parallel/averagers/gather_scatter.h"
#include "syncopate/parallel/averagers/low_rank.h"
#include "syncopate/parallel/server/parameter_server.h"
#include "syncopate/parallel/strategies/diloco.h"
#include "syncopate/parallel/strategies/every_step.h"
#include "syncopate/parallel/strategies/hogwild.h"
#include "syncopate/parallel/strategies/local_sgd.h"
#include "syncopate/parallel/strategies/one_bit.h"
#include "syncopate/parallel/strategies/overlapped.h"

namespace syncopate::run {
namespace {

optim::OptimizerOptions optimizer_options(const RunSpec::Optim& spec) {
  return {.kind = spec.name,
          .weight_decay = spec.weight_decay,
          .beta1 = spec.beta1,
          .beta2 = spec.beta2,
          .eps = spec.eps,
          .momentum = spec.momentum,
          .nesterov = spec.nesterov,
          .trust = spec.trust};
}

}  // namespace

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names{"single", "gather-scatter", "all-reduce",
                                              "ddp",    "data-parallel",  "local-sgd",
                                              "diloco", "hogwild",        "parameter-server"};
  return names;
}

void require_strategy(const std::string& name) {
  const auto& names = strategy_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw ConfigError("unknown strategy \"{}\"{}", name, suggestion(name, names));
}

bool runs_in_one_process(const std::string& strategy) { return strategy == "data-parallel"; }

const std::vector<std::string>& codec_names() {
  static const std::vector<std::string> names{"none",  "fp16",     "bf16",      "int8",   "int4",
                                              "top-k", "random-k", "power-sgd", "one-bit"};
  return names;
}

namespace {

bool makes_local_steps(const std::string& strategy) {
  return strategy == "local-sgd" || strategy == "diloco";
}

parallel::LocalSteps::Options local_steps_of(const RunSpec::Strategy& spec) {
  parallel::LocalSteps::Options options;
  options.rounds = {.every = spec.every, .delay = spec.delay};
  options.moments = parallel::parse_moments(spec.moments);
  if (spec.name == "diloco") {
    options.rounds.fragments = spec.fragments;
    return options;
  }
  options.first = spec.post_local_start;
  if (spec.overlap_average && spec.every < 2) {
    throw ConfigError("strategy.overlap_average needs strategy.every of 2 or more, got {}", spec.every);
  }
  if (spec.overlap_average && spec.delay == 0) options.rounds.delay = spec.every / 2;
  return options;
}

/// fp16 and bf16 lose too little to keep it; others need it.
bool feeds_back(const RunSpec::Codec& codec) {
  if (codec.error_feedback != "auto") return codec.error_feedback == "true";
  return codec.name != "fp16" && codec.name != "bf16";
}

int64_t warmup_steps(const RunSpec::Codec& codec, int64_t steps) {
  return std::llround(codec.warmup < 1 ? codec.warmup * static_cast<double>(steps) : codec.warmup);
}

/// What is averaged: gradients come in the loss scale, parameters and their differences do not.
enum class Averaged { kGradients, kParameters };

std::unique_ptr<parallel::Averager> make_averager(const RunSpec& spec, comm::Group& group, int64_t steps,
                                                  Averaged what) {
  const RunSpec::Codec& codec = spec.codec;
  const bool scaled = what == Averaged::kGradients;
  if (codec.name == "none") return std::make_unique<parallel::AllReduce>(group);
  if (codec.name == "power-sgd") {
    return std::make_unique<parallel::LowRank>(
        group, parallel::LowRank::Options{.rank = codec.rank,
                                          .error_feedback = feeds_back(codec),
                                          .scaled = scaled,
                                          .warmup = warmup_steps(codec, steps)});
  }
  const std::string name = codec.name == "one-bit" ? "sign" : codec.name;
  return std::make_unique<parallel::Coded>(
      group, codec::make_codec({.name = name, .ratio = codec.ratio}),
      parallel::Coded::Options{.error_feedback = feeds_back(codec), .scaled = scaled});
}

std::unique_ptr<parallel::Strategy> make_ddp(const RunSpec& whole, comm::Group& group,
                                             std::unique_ptr<parallel::Averager> averager) {
  const RunSpec::Strategy& spec = whole.strategy;
  return std::make_unique<parallel::Overlapped>(
      group, std::move(averager),
      parallel::Overlapped::Options{.bucket_mib = spec.bucket_mib,
                                    .first_bucket_mib = spec.first_bucket_mib,
                                    .sparse_rows = spec.sparse_rows,
                                    .overlap = spec.overlap});
}

std::unique_ptr<parallel::Strategy> make_local_steps(const RunSpec& whole, comm::Group& group,
                                                     int64_t steps) {
  const RunSpec::Strategy& spec = whole.strategy;
  const parallel::LocalSteps::Options options = local_steps_of(spec);
  auto averager = make_averager(whole, group, steps, Averaged::kParameters);
  if (spec.name == "diloco") {
    return std::make_unique<parallel::DiLoCo>(
        group, std::move(averager), options,
        parallel::DiLoCo::OuterRound{
            .outer = {.lr = spec.outer_lr, .momentum = spec.outer_momentum, .nesterov = spec.outer_nesterov},
            .mixing = spec.mixing});
  }
  std::unique_ptr<parallel::Strategy> before;
  if (options.first > 0) {
    before = make_ddp(whole, group, make_averager(whole, group, steps, Averaged::kGradients));
  }
  return std::make_unique<parallel::LocalSgd>(group, std::move(averager), options, whole.codec.name != "none",
                                              std::move(before));
}

/// A step in which all make the same update: ddp or all-reduce.
std::unique_ptr<parallel::Strategy> make_common_steps(const RunSpec& whole, comm::Group& group,
                                                      int64_t steps) {
  // With Adam, one bit is a strategy of its own, which begins with plain steps.
  const bool one_bit_adam = whole.codec.name == "one-bit" && whole.optim.name == "adamw";
  std::unique_ptr<parallel::Averager> averager =
      one_bit_adam ? std::make_unique<parallel::AllReduce>(group)
                   : make_averager(whole, group, steps, Averaged::kGradients);
  std::unique_ptr<parallel::Strategy> strategy;
  if (whole.strategy.name == "all-reduce") {
    strategy = std::make_unique<parallel::EveryStep>(
        group, std::move(averager), parallel::EveryStep::Options{.whole = whole.strategy.whole});
  } else {
    strategy = make_ddp(whole, group, std::move(averager));
  }
  if (!one_bit_adam) return strategy;
  return std::make_unique<parallel::OneBit>(
      group, std::move(strategy),
      parallel::OneBit::Options{.warmup = warmup_steps(whole.codec, steps),
                                .error_feedback = feeds_back(whole.codec)});
}

}  // namespace

void require_codec(const RunSpec& spec) {
  const std::string &name = spec.codec.name, &strategy = spec.strategy.name;
  const auto& names = codec_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw ConfigError("unknown codec \"{}\"{}", name, suggestion(name, names));
  }
  if (name == "none") return;
  if (strategy == "single" || strategy == "gather-scatter" || strategy == "hogwild" ||
      strategy == "parameter-server") {
    throw ConfigError(
        "the strategy {} cannot use --codec {}; choose ddp, all-reduce, data-parallel, local-sgd "
        "or diloco, or --codec none",
        strategy, name);
  }
  if (name == "one-bit" && makes_local_steps(strategy)) {
    throw ConfigError(
        "the codec one-bit is for the strategies ddp, all-reduce and data-parallel; for {} choose --codec "
        "int4",
        strategy);
  }
  if (name == "one-bit" && spec.optim.name != "adamw" && spec.optim.name != "sgd") {
    throw ConfigError("the codec one-bit needs --optimizer adamw or sgd, got {}", spec.optim.name);
  }
  // Gradients in the loss scale, which begins at 65,536, would be cut off at fp16's end without anybody
  // noticing.
  if (name == "fp16" && spec.compute.precision == "fp16" &&
      (!makes_local_steps(strategy) || spec.strategy.post_local_start > 0)) {
    throw ConfigError(
        "--codec fp16 cannot hold the scaled gradients of --precision fp16; use --codec bf16 or --precision "
        "bf16");
  }
  if (!(spec.codec.ratio > 0 && spec.codec.ratio <= 1)) {
    throw ConfigError("codec.ratio must be above 0 and at most 1, got {}", spec.codec.ratio);
  }
  if (spec.codec.rank < 1) throw ConfigError("codec.rank must be 1 or more, got {}", spec.codec.rank);
  if (!(spec.codec.warmup >= 0) || !std::isfinite(spec.codec.warmup)) {
    throw ConfigError("codec.warmup must be 0 or more (a share of the steps, or steps if 1 or more), got {}",
                      spec.codec.warmup);
  }
}

namespace {

/// Settings of a strategy's sibling, which look as if they did something. Those of strangers may stand in an
/// experiment that runs both.
void require_heeded(const RunSpec& spec) {
  const RunSpec::Strategy& strategy = spec.strategy;
  const auto refuse = [&](const char* name, bool set, const char* setting, const char* whose) {
    if (strategy.name != name || !set) return;
    throw ConfigError("the strategy {} has no use for {}; it is a setting of {}", name, setting, whose);
  };
  refuse("diloco", strategy.post_local_start != 0, "strategy.post_local_start", "local-sgd");
  refuse("diloco", strategy.overlap_average, "strategy.overlap_average", "local-sgd; set strategy.delay");
  refuse("local-sgd", strategy.fragments != 1, "strategy.fragments", "diloco");
  refuse("local-sgd", strategy.mixing != 0, "strategy.mixing", "diloco");
  refuse("hogwild", strategy.staleness != "inf", "strategy.staleness", "parameter-server");
  refuse("hogwild", strategy.servers != 1, "strategy.servers", "parameter-server");
  refuse("parameter-server", strategy.state != "own", "strategy.state", "hogwild");
  refuse("parameter-server", spec.staleness_bound() == 0 && strategy.staleness_lr, "strategy.staleness_lr",
         "a staleness above 0");
}

}  // namespace

void require_settings(const RunSpec& spec) {
  require_heeded(spec);
  if (!makes_local_steps(spec.strategy.name)) return;
  if (spec.model.batch_norm != "local") {
    throw ConfigError(
        "model.batch_norm={} makes workers talk in every step, and those of {} do not; use "
        "model.batch_norm=local",
        spec.model.batch_norm, spec.strategy.name);
  }
  make_local_steps(spec, *comm::open_alone(), 1);
}

std::unique_ptr<parallel::Strategy> make_strategy(const RunSpec& whole, comm::Group& group, int64_t steps,
                                                  comm::Group* world) {
  const RunSpec::Strategy& spec = whole.strategy;
  require_strategy(spec.name);
  require_codec(whole);
  if (spec.name == "single") return std::make_unique<parallel::Single>();
  if (spec.name == "hogwild") {
    return std::make_unique<parallel::Hogwild>(
        group, parallel::Hogwild::Options{.share_state = spec.state == "shared"});
  }
  if (spec.name == "parameter-server") {
    check(world != nullptr, "a parameter server is among the ranks");
    const parallel::ServerClient::Options options{
        .whole_tensors = parallel::needs_whole_tensors(whole.optim.name), .sparse_rows = spec.sparse_rows};
    if (whole.staleness_bound() == 0)
      return std::make_unique<parallel::LockstepServer>(*world, group, options);
    return std::make_unique<parallel::ParameterServer>(*world, group, options);
  }
  if (spec.name == "gather-scatter") {
    return std::make_unique<parallel::EveryStep>(group, std::make_unique<parallel::GatherScatter>(group),
                                                 parallel::EveryStep::Options{.whole = spec.whole});
  }
  if (makes_local_steps(spec.name)) return make_local_steps(whole, group, steps);
  return make_common_steps(whole, group, steps);
}

parallel::ShardServerOptions server_options(const RunSpec& spec) {
  parallel::ShardServerOptions options;
  options.workers = static_cast<int>(spec.comm.workers);
  options.staleness = spec.staleness_bound();
  options.staleness_lr = spec.strategy.staleness_lr;
  options.clip = spec.optim.clip;
  options.optimizer = optimizer_options(spec.optim);
  return options;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const RunSpec::Optim& spec,
                                                 const tensor::FlatParams& params) {
  return optim::make_optimizer(optimizer_options(spec), params);
}

std::unique_ptr<optim::Optimizer> make_worker_optimizer(const RunSpec& spec,
                                                        const tensor::FlatParams& params) {
  if (spec.servers() > 0) return std::make_unique<optim::RemoteOptimizer>();
  return make_optimizer(spec.optim, params);
}

optim::Schedule make_schedule(const RunSpec::Optim& spec, int64_t steps, int64_t batch) {
  return {{.kind = spec.schedule,
           .lr = spec.lr,
           .warmup = spec.warmup,
           .gamma = spec.gamma,
           .milestones = spec.milestones,
           .cycle = spec.cycle,
           .cycle_ratio = spec.cycle_ratio,
           .power = spec.power,
           .final_share = spec.final_share,
           .scaling = spec.scaling,
           .base_batch = static_cast<double>(spec.base_batch),
           .batch = static_cast<double>(batch)},
          steps};
}

}  // namespace syncopate::run
