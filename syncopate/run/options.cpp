#include "syncopate/run/options.h"

#include <cmath>

#include "syncopate/spec/strategies.h"

namespace syncopate::run {
namespace {

parallel::CompressionOptions compression_options(const spec::RunSpec& spec, int64_t steps) {
  const spec::RunSpec::Codec& codec = spec.codec;
  parallel::CompressionOptions options;
  options.codec = codec.name;
  options.ratio = codec.ratio;
  options.rank = codec.rank;
  options.warmup = std::llround(codec.warmup < 1 ? codec.warmup * static_cast<double>(steps) : codec.warmup);
  if (codec.error_feedback != "auto") options.error_feedback = codec.error_feedback == "true";
  options.one_bit_adam = spec::optimizer_info(spec.optim.name).one_bit_adam;
  return options;
}

parallel::LocalSteps::Options local_options(const spec::RunSpec::Strategy& spec) {
  parallel::LocalSteps::Options options;
  options.rounds = {.every = spec.every, .fragments = spec.fragments, .delay = spec.delay};
  options.first = spec.post_local_start;
  options.moments = parallel::parse_moments(spec.moments);
  if (spec.overlap_average && spec.delay == 0) options.rounds.delay = spec.every / 2;
  return options;
}

}  // namespace

parallel::ActivationOptions activation_options(const spec::RunSpec& spec,
                                               const std::filesystem::path& folder) {
  const spec::RunSpec::Activation& a = spec.activation;
  return {.codec = a.codec,
          .forward_bits = static_cast<int>(a.forward_bits),
          .backward_bits = static_cast<int>(a.backward_bits),
          .rounding = a.rounding,
          .first_visit = a.first_visit,
          .buffer = a.buffer,
          .store = a.store,
          .buffer_gib = a.buffer_gib,
          .folder = folder};
}

parallel::StrategyOptions strategy_options(const spec::RunSpec& spec, int64_t steps) {
  const spec::RunSpec::Strategy& s = spec.strategy;
  parallel::StrategyOptions options;
  options.name = s.name;
  options.compression = compression_options(spec, steps);
  options.whole = s.whole;
  options.share = s.share_update;
  options.buckets = {.bucket_mib = s.bucket_mib,
                     .first_bucket_mib = s.first_bucket_mib,
                     .sparse_rows = s.sparse_rows,
                     .overlap = s.overlap};
  options.local = local_options(s);
  options.outer = {.outer = {.lr = s.outer_lr, .momentum = s.outer_momentum, .nesterov = s.outer_nesterov},
                   .mixing = s.mixing};
  options.hogwild = {.share_state = s.state == "shared"};
  options.client = {.whole_tensors = spec::optimizer_info(spec.optim.name).whole_tensors,
                    .sparse_rows = s.sparse_rows};
  options.synchronous_server = spec.staleness_bound() == 0;
  return options;
}

optim::OptimizerOptions optimizer_options(const spec::RunSpec::Optim& spec) {
  return {.kind = spec.name,
          .weight_decay = spec.weight_decay,
          .beta1 = spec.beta1,
          .beta2 = spec.beta2,
          .eps = spec.eps,
          .momentum = spec.momentum,
          .nesterov = spec.nesterov,
          .trust = spec.trust};
}

optim::ScheduleOptions schedule_options(const spec::RunSpec::Optim& spec, int64_t batch) {
  return {.kind = spec.schedule,
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
          .batch = static_cast<double>(batch)};
}

parallel::ShardServerOptions server_options(const spec::RunSpec& spec) {
  parallel::ShardServerOptions options;
  options.workers = static_cast<int>(spec.comm.workers);
  options.staleness = spec.staleness_bound();
  options.staleness_lr = spec.strategy.staleness_lr;
  options.clip = spec.optim.clip;
  options.optimizer = optimizer_options(spec.optim);
  return options;
}

std::string why_no_graphs(const spec::RunSpec& spec, bool kernels, bool talks) {
  if (!kernels) return "this program was built without CUDA's compiler";
  if (spec.pipeline.stages > 1) return "stages wait for each other in between";
  if (spec.compute.recompute) return "compute.recompute computes parts again, with the same noise";
  if (talks) return "model.batch_norm=sync exchanges in between";
  if (spec::strategy_info(spec.strategy.name).in_one_process) return "the workers are threads of one process";
  return "";
}

}  // namespace syncopate::run
