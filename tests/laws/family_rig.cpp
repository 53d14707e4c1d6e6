#include "tests/laws/family_rig.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <mutex>

#include "syncopate/comm/metering/metered.h"
#include "syncopate/parallel/engines/engine_around.h"
#include "syncopate/parallel/engines/pipeline_engine.h"
#include "syncopate/run/assemble.h"
#include "syncopate/run/stages.h"
#include "tests/contract/ranks.h"

namespace syncopate::test {
namespace {

/// Notes what this rank's loss was a sum over.
class CountingEngine : public parallel::EngineAround {
 public:
  using EngineAround::EngineAround;
  parallel::Gradients run(parallel::Replica& replica, std::span<const tensor::Batch> micro,
                          uint64_t noise_key, const parallel::EngineEvents& events) override {
    parallel::Gradients made = EngineAround::run(replica, micro, noise_key, events);
    counts.push_back(made.loss.count);
    if (const auto* pipeline = dynamic_cast<const parallel::PipelineEngine*>(&inner())) {
      const auto digest = [](const parallel::ActivationCodec* codec) { return codec ? codec->digest() : 0; };
      remembered.emplace_back(digest(pipeline->before()), digest(pipeline->after()));
    }
    return made;
  }
  std::vector<int64_t> counts;
  std::vector<std::pair<uint64_t, uint64_t>> remembered;
};

class MeanOfCountedMeans : public parallel::Strategy {
 public:
  MeanOfCountedMeans(std::unique_ptr<parallel::Strategy> inner, const comm::Group& group,
                     const CountingEngine& engine)
      : inner_(std::move(inner)), group_(group), engine_(engine) {}
  void start(parallel::Replica& replica) override { inner_->start(replica); }
  parallel::Update step(parallel::Replica& replica, const parallel::StepContext& context) override {
    const auto mine = static_cast<double>(engine_.counts.back());
    if (mine > 0) replica.params.grads.mul_(context.count / (group_.size() * mine));
    return inner_->step(replica, context);
  }

 private:
  std::unique_ptr<parallel::Strategy> inner_;
  const comm::Group& group_;
  const CountingEngine& engine_;
};

class Losses : public train::Listener {
 public:
  Losses(FamilyTrace& trace, bool writes, int64_t stop_after)
      : trace_(trace), writes_(writes), stop_after_(stop_after) {}
  void update(const record::StepRecord&, double) override { ++done_; }
  void updates(const std::vector<record::StepRecord>& records) override {
    for (const record::StepRecord& record : records) {
      if (writes_) trace_.losses.push_back(record.loss);
    }
  }
  bool stop_requested() override { return stop_after_ > 0 && done_ + 1 >= stop_after_; }

 private:
  FamilyTrace& trace_;
  bool writes_;
  int64_t stop_after_, done_ = 0;
};

at::Tensor joined(const std::vector<tensor::NamedTensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const auto& each : tensors) flat.push_back(each.tensor.detach().to(at::kDouble).flatten());
  return flat.empty() ? at::Tensor() : at::cat(flat);
}

void train_rank(const FamilyRun& run, std::unique_ptr<comm::Group> mine, FamilyTrace& trace) {
  const spec::RunSpec& spec = run.spec;
  comm::Metered group(std::move(mine));
  const int rank = group.rank();
  tasks::TaskSetup setup = tasks::family_of(spec.task.name).make(spec, group);
  CountingEngine* engine = nullptr;
  run::AssemblyOptions options;
  options.checkpoint = run.checkpoint;
  options.buffers = run.buffers;
  options.precision = run.precision;
  if (!run.traces.empty()) options.trace = run.traces[static_cast<size_t>(rank)];
  options.around_engine = [&](std::unique_ptr<parallel::Engine> inner) {
    auto counting = std::make_unique<CountingEngine>(std::move(inner));
    engine = counting.get();
    return counting;
  };
  if (run.mean_of_means) {
    options.around_strategy = [&](std::unique_ptr<parallel::Strategy> inner) {
      return std::make_unique<MeanOfCountedMeans>(std::move(inner), group, *engine);
    };
  }
  const run::RunMesh mesh(spec, group);
  run::Assembly assembly = run::assemble(spec, setup, mesh.mesh(), group, options);
  Losses listener(trace, rank == 0, run.stop_after);
  const train::TrainResult result = assembly.train(listener, run.resume);
  const auto at = static_cast<size_t>(rank);
  trace.parameters[at] = assembly.replica().params.values.clone();
  trace.buffers[at] = joined(assembly.replica().model.buffers());
  trace.own_counts[at] = engine->counts.front();
  trace.remembered[at] = engine->remembered;
  assembly.collect_model();
  if (rank > 0) return;
  trace.start_hash = result.start_hash;
  trace.shared = assembly.replica().shared != nullptr;
  trace.whole = joined(setup.model->parameters());
  if (trace.buffers[at].defined()) trace.whole = at::cat({trace.whole, joined(setup.model->buffers())});
  if (result.eval) trace.eval = *result.eval;
}

}  // namespace

spec::RunSpec small_spec(const std::string& task, const std::string& data) {
  spec::RunSpec spec;
  spec.task.name = task;
  spec.task.data = data;
  spec.complete();
  spec.task.max_length = task == "squad" ? 80 : task == "cifar10" || task == "idx" ? 0 : 16;
  spec.task.stride = 8;  // and 64 pieces for a question leave a window little room
  spec.task.mask_rate = 0.3;
  if (task == "csv") {
    spec.task.text = "text";
    spec.task.label = "label";
  }
  spec.strategy.share_update = false;  // else all replicas are equal because they are one
  spec.model.vocab_size = 300;
  spec.model.dropout = 0.1;
  spec.train.global_batch = 11;  // no multiple of two or three
  spec.train.steps = 24;
  spec.train.eval_every = "1000";  // the end alone
  spec.train.eval_batch = 7;
  spec.train.seed = 3;
  spec.optim.lr = 1e-3;
  spec.optim.clip = 0;
  spec.optim.eps = 1e-6;  // Adam makes steps of the rounding where a gradient is zero: keys' biases
  return spec;
}

FamilyRun with_workers(spec::RunSpec spec, int workers, const std::string& strategy) {
  spec.comm.workers = workers;
  spec.strategy.name = workers == 1 ? "single" : strategy;
  return {.spec = std::move(spec)};
}

FamilyTrace train(const FamilyRun& run) {
  run.spec.validate();
  const auto workers = static_cast<size_t>(run.spec.comm.workers);
  FamilyTrace trace;
  trace.parameters.resize(workers);
  trace.buffers.resize(workers);
  trace.own_counts.resize(workers);
  trace.remembered.resize(workers);
  auto groups = comm::open_in_process(static_cast<int>(workers), kPatience);
  run_threads(static_cast<int>(workers), [&](int rank) {
    at::set_num_threads(1);
    train_rank(run, std::move(groups[static_cast<size_t>(rank)]), trace);
  });
  return trace;
}

void for_each_rank_setup(const spec::RunSpec& spec, const std::function<void(tasks::TaskSetup&)>& use) {
  std::mutex mutex;
  run_ranks(static_cast<int>(spec.comm.workers), [&](comm::Group& group) {
    tasks::TaskSetup setup = tasks::family_of(spec.task.name).make(spec, group);
    const std::lock_guard lock(mutex);
    use(setup);
  });
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / a.abs().max()).item<double>();
}

}  // namespace syncopate::test
