#include "syncopate/run/assemble.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/text.h"
#include "syncopate/gpu/graph.h"
#include "syncopate/nn/fingerprint.h"
#include "syncopate/optim/remote_optimizer.h"
#include "syncopate/parallel/engines/graph_engine.h"
#include "syncopate/parallel/engines/local_engine.h"
#include "syncopate/parallel/engines/pipeline_engine.h"
#include "syncopate/parallel/engines/slow_engine.h"
#include "syncopate/parallel/pipeline/cut.h"
#include "syncopate/run/device.h"
#include "syncopate/run/options.h"
#include "syncopate/run/stages.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::run {
namespace {

/// The library's messages begin with the name of an option, which users know as a setting of `group`.
template <typename Make>
auto with_setting_names(const std::string& group, const Make& make) {
  try {
    return make();
  } catch (const ConfigError& error) {
    const std::string said = error.what(), setting = group + "." + said.substr(0, said.find(' '));
    spec::RunSpec spec;
    const Fields fields = spec.fields();
    const bool known = std::any_of(fields.all().begin(), fields.all().end(),
                                   [&](const Fields::Field& field) { return field.name == setting; });
    if (!known) throw;
    throw ConfigError("{}.{}", group, said);
  }
}

/// The worker's own: none where servers have it.
std::unique_ptr<optim::Optimizer> make_optimizer(const spec::RunSpec& spec,
                                                 const tensor::FlatParams& params) {
  if (spec.servers() > 0) return std::make_unique<optim::RemoteOptimizer>();
  return with_setting_names("optim",
                            [&] { return optim::make_optimizer(optimizer_options(spec.optim), params); });
}

constexpr double kWhole = 1e12;  // MiB

int64_t count_steps(const spec::RunSpec& spec, int64_t steps_per_epoch, int64_t updates_per_step) {
  if (spec.train.steps > 0) return spec.train.steps * updates_per_step;
  return std::max<int64_t>(1, spec.train.epochs) * steps_per_epoch;
}

}  // namespace

Assembly::Assembly(const spec::RunSpec& spec, tasks::TaskSetup& setup, const parallel::Mesh& mesh,
                   const comm::Metered& meter, AssemblyOptions options)
    : spec_(spec),
      setup_(setup),
      mesh_(mesh),
      meter_(meter),
      options_(std::move(options)),
      updates_per_step_(spec.runs_free() ? mesh.replicas.size() : 1),
      stage_(prepare_model()),
      params_(flat_parameters()),
      optimizer_(make_optimizer(spec, params_)),
      replica_{.model = model(),
               .params = params_,
               .optimizer = *optimizer_,
               .clip = spec.optim.clip,
               .precision = options_.precision,
               .loss_scale = options_.precision == tensor::Precision::kFp16 ? &loss_scale_ : nullptr,
               .stages = mesh.stages,
               .trace = options_.trace},
      loader_(setup.train, loader_options()),
      steps_(count_steps(spec, loader_.steps_per_epoch(), updates_per_step_)),
      schedule_(with_setting_names("optim", [&] {
        return optim::Schedule(schedule_options(spec.optim, loader_.global_batch()),
                               (steps_ + updates_per_step_ - 1) / updates_per_step_);
      })) {
  move_buffers(*setup.model, options_.device);
  if (gpu::built() && options_.device.is_cuda() && !stage_ && options_.precision == tensor::Precision::kBf16)
    params_.keep_half(at::kBFloat16);
  if (stage_) {
    stage_->release_others();
    for (const auto& [name, tensor] : stage_->borrowed())
      tensor.set_data(tensor.detach().to(options_.device));
  }
  make_engine();
  make_strategy();
}

tensor::FlatParams Assembly::flat_parameters() {
  if (options_.device.is_cuda() && options_.precision != tensor::Precision::kFp32)
    at::globalContext().setBenchmarkCuDNN(spec_.compute.autotune);
  // Before anything is on the device: a recorded graph may not wait for another stream.
  if (gpu::built() && options_.device.is_cuda()) gpu::use_own_stream(options_.device);
  return tensor::FlatParams(model().parameters(), options_.device);
}

/// A worker of its own rhythm would see texts of other lengths than the others do: there texts stay with
/// their worker. What stages remember of an example and a worker keeps it where it is altogether, and so do
/// GPUs, for batches of one shape.
data::Arrange Assembly::arrangement() const {
  if (!spec_.train.arrange || spec::activation_codec_info(spec_.activation.codec).remembers)
    return data::Arrange::kInOrder;
  const at::Tensor gpus = at::full({1}, options_.device.is_cpu() ? 0 : 1, at::kLong);
  if (mesh_.world.size() > 1) mesh_.world.all_reduce(gpus, comm::Op::kMax).wait();  // devices may differ
  if (gpus.item<int64_t>() > 0) return data::Arrange::kInOrder;
  // A server that waits for every worker is an all-reduce by other means.
  const bool local = spec::strategy_info(spec_.strategy.name).rhythm == spec::Rhythm::kLocal;
  const bool together = !local && !spec_.runs_free();
  return together ? data::Arrange::kAcrossWorkers : data::Arrange::kWithinWorkers;
}

data::LoaderOptions Assembly::loader_options() const {
  const bool free = spec_.runs_free();  // then every batch is one worker's, whoever takes it
  return {.global_batch = spec_.examples_per_step() / updates_per_step_,
          .workers = free ? 1 : mesh_.replicas.size(),
          .rank = free ? 0 : mesh_.replicas.rank(),
          .accumulate = static_cast<int>(spec_.train.accumulate * spec_.micro_batches()),
          .seed = static_cast<uint64_t>(spec_.train.seed),
          .shuffle = spec_.task.shuffle,
          .threads = static_cast<int>(spec_.compute.loader_threads),
          .on_demand = free,
          .keep_empty = setup_.model->every_rank_computes(),
          .sticky = spec::activation_codec_info(spec_.activation.codec).remembers,
          .arrange = arrangement()};
}

std::unique_ptr<nn::StageModel> Assembly::prepare_model() {
  for (const auto& [name, parameter] : setup_.model->parameters()) parameters_ += parameter.numel();
  // One rank alone measures layers, so a model that computes together with others is connected after that.
  const auto connect = [&] {
    if (setup_.connect) setup_.connect(mesh_.replicas);
  };
  if (!mesh_.staged()) {
    connect();
    return nullptr;
  }
  start_hash_ = nn::fingerprint(*setup_.model);
  const std::vector<int64_t> blocks =
      choose_cut(spec_, *setup_.model, *setup_.train, mesh_.world, options_.cut);
  const auto layers = parallel::layers_of_stages(*setup_.model, blocks);
  cut_ = parallel::cut_in_words(blocks);
  connect();
  return std::make_unique<nn::StageModel>(*setup_.model, layers[static_cast<size_t>(mesh_.stages->rank())]);
}

void Assembly::collect_model() {
  if (stage_) collect_whole(*stage_, mesh_.world);
}

bool Assembly::records_graphs() const {
  return options_.device.is_cuda() && spec_.compute.graphs && why_no_graphs().empty();
}

std::string Assembly::why_no_graphs() const {
  return run::why_no_graphs(spec_, gpu::built(), setup_.model->every_rank_computes());
}

void Assembly::make_engine() {
  if (options_.device.is_cuda() && spec_.compute.graphs && options_.note && !records_graphs()) {
    options_.note(
        fmt::format("the GPU's work is launched kernel by kernel, not as a graph: {}", why_no_graphs()));
  }
  if (!stage_) {
    engine_ = std::make_unique<parallel::LocalEngine>(
        parallel::LocalEngineOptions{.recompute = spec_.compute.recompute});
    if (records_graphs()) {
      engine_ = std::make_unique<parallel::GraphEngine>(std::move(engine_), [this](const std::string& text) {
        if (options_.note) options_.note(text);
      });
    }
  } else {
    parallel::PipelineEngine::Options options{
        .schedule = parallel::parse_schedule(spec_.pipeline.schedule),
        .recompute = spec_.compute.recompute,
        .activation = activation_options(spec_, options_.buffers),
        .run = checksum(cut_ + start_hash_ + options_.inputs.dump() + std::to_string(spec_.train.seed)),
        .replica = mesh_.replicas.rank(),
        .coded_evaluations = spec_.activation.eval == "coded"};
    const auto tied = stage_->first() ? setup_.model->tied() : stage_->borrowed();
    for (const auto& [name, table] : tied) options.tied.push_back(table);
    auto pipeline = std::make_unique<parallel::PipelineEngine>(*mesh_.stages, std::move(options));
    pipeline_ = pipeline.get();
    engine_ = std::move(pipeline);
  }
  const double slowness = spec_.slowness_of(mesh_.world.rank());
  if (slowness > 1) engine_ = std::make_unique<parallel::SlowEngine>(std::move(engine_), slowness);
  if (options_.around_engine) engine_ = options_.around_engine(std::move(engine_));
}

void Assembly::make_strategy() {
  if (options_.strategy) {
    strategy_ = {options_.strategy(mesh_.replicas), nullptr};
  } else {
    parallel::StrategyOptions options = strategy_options(spec_, steps_);
    // A recorded backward pass tells nobody when a gradient is there: buckets would only be waited for in
    // turn.
    if (records_graphs()) options.buckets.bucket_mib = options.buckets.first_bucket_mib = kWhole;
    if (spec_.train.noise_scale) options.noise_scale = &noise_scale_;
    strategy_ = parallel::make_strategy(options, mesh_.replicas, options_.with_servers);
  }
  check(options_.strategy || spec_.runs_free() == (strategy_.free != nullptr),
        "the loader knows who runs free");
  if (options_.around_strategy)
    strategy_ = {options_.around_strategy(std::move(strategy_.strategy)), strategy_.free};
}

train::TrainResult Assembly::train(train::Listener& listener, bool resume) {
  std::optional<train::BalanceOptions> balance = options_.balance;
  if (!balance && spec_.train.balance) balance = train::BalanceOptions{.every = spec_.train.balance_every};
  nlohmann::ordered_json environment = options_.environment;
  // The schedule depends on it.
  if (!cut_.empty()) environment["cut"] = cut_;
  environment["steps"] = (steps_ + updates_per_step_ - 1) / updates_per_step_;
  const spec::RunSpec::Saving saving = spec_.saving();
  train::Trainer trainer({.replica = replica_,
                          .engine = *engine_,
                          .strategy = *strategy_.strategy,
                          .mesh = mesh_,
                          .meter = meter_,
                          .loader = loader_,
                          .test = setup_.test.get(),
                          .metric = setup_.metric,
                          .validation = setup_.validation.get(),
                          .validation_metric = setup_.validation_metric,
                          .schedule = schedule_,
                          .listener = listener,
                          .loop = strategy_.free != nullptr ? train::free_loop(*strategy_.free)
                                                            : train::MakeLoop(train::lockstep_loop)},
                         {.steps = steps_,
                          .updates_per_step = updates_per_step_,
                          .eval_every = parse_integer(spec_.train.eval_every).value_or(0) * updates_per_step_,
                          .save_every = saving.steps > 0 ? saving.steps * updates_per_step_
                                        : saving.epochs  ? 0
                                                         : -1,
                          .eval_batch = spec_.eval_batch(),
                          .broadcast_buffers = spec_.model.batch_norm == "broadcast",
                          .seed = static_cast<uint64_t>(spec_.train.seed),
                          .control = {.patience = spec_.train.patience,
                                      .plateau_factor = spec_.optim.plateau_factor,
                                      .plateau_patience = spec_.optim.plateau_patience,
                                      .time_limit = spec_.train.time_limit,
                                      .save_seconds = saving.seconds,
                                      .clock = options_.clock},
                          .keep_best = spec_.keeps_best(),
                          .balance = balance,
                          .noise_scale = spec_.train.noise_scale ? &noise_scale_ : nullptr,
                          .coded_eval = spec_.activation.eval == "both",
                          .worker_evals = spec_.train.worker_evals,
                          .start_hash = start_hash_,
                          .checkpoint = options_.checkpoint,
                          .inputs = options_.inputs,
                          .environment = std::move(environment)});
  return trainer.run(resume);
}

}  // namespace syncopate::run
