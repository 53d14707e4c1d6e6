#include "syncopate/run/build.h"

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/parallel/all_reduce.h"
#include "syncopate/parallel/every_step.h"
#include "syncopate/parallel/gather_scatter.h"
#include "syncopate/parallel/overlapped.h"

namespace syncopate::run {

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names{"single", "gather-scatter", "all-reduce", "ddp"};
  return names;
}

void require_strategy(const std::string& name) {
  const auto& names = strategy_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw ConfigError("unknown strategy \"{}\"{}", name, suggestion(name, names));
}

const std::vector<std::string>& codec_names() {
  static const std::vector<std::string> names{"none"};
  return names;
}

void require_codec(const std::string& name, const std::string&) {
  const auto& names = codec_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw ConfigError("unknown codec \"{}\"{}", name, suggestion(name, names));
}

std::unique_ptr<parallel::Strategy> make_strategy(const RunSpec& whole, comm::Group& group,
                                                  int64_t /*steps*/) {
  const RunSpec::Strategy& spec = whole.strategy;
  require_strategy(spec.name);
  require_codec(whole.codec.name, spec.name);
  if (spec.name == "single") return std::make_unique<parallel::Single>();
  if (spec.name == "gather-scatter") {
    return std::make_unique<parallel::EveryStep>(group, std::make_unique<parallel::GatherScatter>(group),
                                                 parallel::EveryStep::Options{.whole = spec.whole});
  }
  auto all_reduce = std::make_unique<parallel::AllReduce>(group);
  if (spec.name == "all-reduce") {
    return std::make_unique<parallel::EveryStep>(group, std::move(all_reduce),
                                                 parallel::EveryStep::Options{.whole = spec.whole});
  }
  return std::make_unique<parallel::Overlapped>(
      group, std::move(all_reduce),
      parallel::Overlapped::Options{.bucket_mib = spec.bucket_mib,
                                    .first_bucket_mib = spec.first_bucket_mib,
                                    .sparse_rows = spec.sparse_rows,
                                    .overlap = spec.overlap});
}

std::unique_ptr<optim::Optimizer> make_optimizer(const RunSpec::Optim& spec,
                                                 const tensor::FlatParams& params) {
  return optim::make_optimizer({.kind = spec.name,
                                .weight_decay = spec.weight_decay,
                                .beta1 = spec.beta1,
                                .beta2 = spec.beta2,
                                .eps = spec.eps,
                                .momentum = spec.momentum,
                                .nesterov = spec.nesterov,
                                .trust = spec.trust},
                               params);
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
