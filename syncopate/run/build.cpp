#include "syncopate/run/build.h"

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/inproc.h"
#include "syncopate/optim/elsewhere.h"
#include "syncopate/parallel/all_reduce.h"
#include "syncopate/parallel/diloco.h"
#include "syncopate/parallel/every_step.h"
#include "syncopate/parallel/gather_scatter.h"
#include "syncopate/parallel/hogwild.h"
#include "syncopate/parallel/local_sgd.h"
#include "syncopate/parallel/overlapped.h"
#include "syncopate/parallel/parameter_server.h"

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
  static const std::vector<std::string> names{"none"};
  return names;
}

void require_codec(const std::string& name, const std::string&) {
  const auto& names = codec_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw ConfigError("unknown codec \"{}\"{}", name, suggestion(name, names));
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

std::unique_ptr<parallel::Averager> make_averager(const RunSpec&, comm::Group& group) {
  return std::make_unique<parallel::AllReduce>(group);
}

std::unique_ptr<parallel::Strategy> make_ddp(const RunSpec& whole, comm::Group& group) {
  const RunSpec::Strategy& spec = whole.strategy;
  return std::make_unique<parallel::Overlapped>(
      group, make_averager(whole, group),
      parallel::Overlapped::Options{.bucket_mib = spec.bucket_mib,
                                    .first_bucket_mib = spec.first_bucket_mib,
                                    .sparse_rows = spec.sparse_rows,
                                    .overlap = spec.overlap});
}

std::unique_ptr<parallel::Strategy> make_local_steps(const RunSpec& whole, comm::Group& group) {
  const RunSpec::Strategy& spec = whole.strategy;
  const parallel::LocalSteps::Options options = local_steps_of(spec);
  if (spec.name == "diloco") {
    return std::make_unique<parallel::DiLoCo>(
        group, make_averager(whole, group), options,
        parallel::DiLoCo::OuterRound{
            .outer = {.lr = spec.outer_lr, .momentum = spec.outer_momentum, .nesterov = spec.outer_nesterov},
            .mixing = spec.mixing});
  }
  return std::make_unique<parallel::LocalSgd>(group, make_averager(whole, group), options,
                                              whole.codec.name != "none",
                                              options.first > 0 ? make_ddp(whole, group) : nullptr);
}

}  // namespace

void require_settings(const RunSpec& spec) {
  if (!makes_local_steps(spec.strategy.name)) return;
  if (spec.model.batch_norm != "local") {
    throw ConfigError(
        "model.batch_norm={} makes workers talk in every step, and those of {} do not; use "
        "model.batch_norm=local",
        spec.model.batch_norm, spec.strategy.name);
  }
  make_local_steps(spec, *comm::open_alone());
}

std::unique_ptr<parallel::Strategy> make_strategy(const RunSpec& whole, comm::Group& group, int64_t /*steps*/,
                                                  comm::Group* world) {
  const RunSpec::Strategy& spec = whole.strategy;
  require_strategy(spec.name);
  require_codec(whole.codec.name, spec.name);
  if (spec.name == "single") return std::make_unique<parallel::Single>();
  if (spec.name == "hogwild") {
    return std::make_unique<parallel::Hogwild>(
        group, parallel::Hogwild::Options{.share_state = spec.state == "shared"});
  }
  if (spec.name == "parameter-server") {
    check(world != nullptr, "a parameter server is among the ranks");
    const bool whole_tensors = parallel::needs_whole_tensors(whole.optim.name);
    if (whole.staleness_bound() == 0)
      return std::make_unique<parallel::LockstepServer>(*world, group, whole_tensors);
    return std::make_unique<parallel::ParameterServer>(*world, group, whole_tensors);
  }
  if (spec.name == "gather-scatter") {
    return std::make_unique<parallel::EveryStep>(group, std::make_unique<parallel::GatherScatter>(group),
                                                 parallel::EveryStep::Options{.whole = spec.whole});
  }
  if (spec.name == "all-reduce") {
    return std::make_unique<parallel::EveryStep>(group, make_averager(whole, group),
                                                 parallel::EveryStep::Options{.whole = spec.whole});
  }
  if (makes_local_steps(spec.name)) return make_local_steps(whole, group);
  return make_ddp(whole, group);
}

parallel::ServerOptions server_options(const RunSpec& spec) {
  parallel::ServerOptions options;
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
  if (spec.servers() > 0) return std::make_unique<optim::Elsewhere>();
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
