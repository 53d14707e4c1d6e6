#include "syncopate/run/probe/step_probe.h"

#include <ATen/ATen.h>
#include <malloc.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/comm/metering/metered.h"
#include "syncopate/parallel/strategies/every_step.h"
#include "syncopate/parallel/strategies/row_exchange.h"
#include "syncopate/run/assemble.h"
#include "syncopate/run/device.h"
#include "syncopate/run/probe/local_costs.h"
#include "syncopate/run/records/recorder.h"
#include "syncopate/run/records/usage.h"
#include "syncopate/spec/strategies.h"
#include "syncopate/tasks/setup.h"

namespace syncopate::run {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// One worker's steps with nobody to tell, which sees when each gradient is in place.
class Watched : public parallel::Single {
 public:
  ~Watched() override {
    for (size_t i = 0; i < accumulators_.size(); ++i) accumulators_[i]->del_post_hook(keys_[i]);
  }

  void start(parallel::Replica& replica) override {
    const auto& entries = replica.params.entries();
    ready_.resize(entries.size());
    rows_.resize(entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      auto accumulator = torch::autograd::impl::grad_accumulator(entries[i].parameter);
      keys_.push_back(accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
          [this, i](const torch::autograd::variable_list& outputs, const torch::autograd::variable_list&) {
            fired_.emplace_back(i, watch_.seconds());
            return outputs;
          })));
      accumulators_.push_back(std::move(accumulator));  // dropped, it would be made anew without its hook
    }
  }

  void before_backward(parallel::Replica&, const parallel::StepContext&, bool last_micro) override {
    if (last_micro) restart();
  }

  parallel::Update step(parallel::Replica& replica, const parallel::StepContext& context) override {
    const double whole = watch_.seconds();
    for (const auto& [entry, seconds] : fired_) ready_[entry].push_back(seconds / whole);
    const auto& entries = replica.params.entries();
    for (size_t i = 0; i < entries.size(); ++i) {
      const at::Tensor read = parallel::rows_read(replica, context, entries[i]);
      if (!read.defined()) continue;
      const at::Tensor flat = read.to(at::kCPU).contiguous();
      const int64_t* const numbers = flat.data_ptr<int64_t>();
      rows_[i].push_back(static_cast<double>(std::set<int64_t>(numbers, numbers + flat.numel()).size()));
    }
    return Single::step(replica, context);
  }

  void restart() {
    fired_.clear();
    watch_.restart();
  }
  /// Entries whose gradient came since, with when.
  const std::vector<std::pair<size_t, double>>& fired() const { return fired_; }
  double ready(size_t entry) const { return median(ready_[entry]); }  ///< NaN: never
  double rows(size_t entry) const { return rows_[entry].empty() ? 0 : median(rows_[entry]); }

 private:
  using Accumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));
  std::vector<Accumulator> accumulators_;
  std::vector<uintptr_t> keys_;
  Stopwatch watch_;
  std::vector<std::pair<size_t, double>> fired_;
  std::vector<std::vector<double>> ready_, rows_;
};

/// What steps computed on.
struct Seen {
  tensor::Batch last{};
  double examples = 0, rows = 0, real_rows = 0;  ///< of texts: tokens, with padding and without
};

/// Remembers what steps computed on.
class Remembering : public parallel::Engine {
 public:
  Remembering(std::unique_ptr<parallel::Engine> inner, Seen& into) : inner_(std::move(inner)), into_(into) {}
  parallel::Gradients run(parallel::Replica& replica, std::span<const tensor::Batch> micro,
                          uint64_t noise_key, const parallel::EngineEvents& events) override {
    for (const tensor::Batch& batch : micro) {
      into_.last = batch;
      const auto mask = batch.fields.find("attention_mask");
      if (mask == batch.fields.end()) continue;
      into_.examples += static_cast<double>(batch.size());
      into_.rows += static_cast<double>(mask->second.numel());
      into_.real_rows += mask->second.sum().item<double>();
    }
    return inner_->run(replica, micro, noise_key, events);
  }

 private:
  std::unique_ptr<parallel::Engine> inner_;
  Seen& into_;
};

/// Takes steps down until there are enough of them.
class Counting : public train::Listener {
 public:
  Counting(double seconds, std::function<bool()> stop) : seconds_(seconds), stop_(std::move(stop)) {}
  void update(const record::StepRecord& record, double) override { steps_.push_back(record); }
  bool stop_requested() override {
    // The first warms up. Small models' steps take milliseconds: those of half a second may all be slow ones.
    constexpr size_t kLeast = 4, kMost = 1000;
    return (stop_ && stop_()) || steps_.size() >= kMost ||
           (steps_.size() >= kLeast && watch_.seconds() > seconds_);
  }
  const std::vector<record::StepRecord>& steps() const { return steps_; }

 private:
  double seconds_;
  std::function<bool()> stop_;
  Stopwatch watch_;
  std::vector<record::StepRecord> steps_;
};

/// The same training of one worker alone, for as long as somebody lets it.
spec::RunSpec alone(const spec::RunSpec& spec, int64_t batch, int rank) {
  spec::RunSpec one = spec;
  one.strategy = {};
  one.strategy.name = "single";
  one.codec = {};
  one.comm = {};
  one.pipeline = {};
  one.activation = {};
  one.network = {};
  one.train.global_batch = batch;
  one.train.batch_size = 0;
  one.train.accumulate = std::min(one.train.accumulate, batch);
  one.train.epochs = 0;
  one.train.steps = 1'000'000;
  one.train.seed += rank;  // other examples
  one.train.eval_every = "epoch";
  one.train.patience = 0;
  one.train.keep = "last";
  one.train.time_limit = 0;
  one.train.balance = one.train.noise_scale = one.train.worker_evals = false;
  one.optim.plateau_factor = 1;
  one.optim.warmup = 0;
  return one;
}

/// Bytes that this process has from the allocator and not given back.
double allocated() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

/// What the names of a layer's parameters have in common, up to a dot: "encoder.layer.3".
std::string common_prefix(const std::vector<std::string>& names) {
  std::string prefix = names.empty() ? "" : names.front();
  for (const std::string& name : names) {
    const auto differ = std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end()).first;
    prefix.erase(differ, prefix.end());
  }
  const size_t dot = prefix.rfind('.');
  return dot == std::string::npos ? "" : prefix.substr(0, dot);
}

/// As a pipeline may cut them: the first layer stays with the first block, the last one with the last.
size_t block_of(size_t layer, const nn::Model& model) {
  return std::min(layer == 0 ? 0 : layer - 1, static_cast<size_t>(model.blocks()) - 1);
}

std::vector<sim::LayerProfile> as_blocks(const std::vector<sim::LayerProfile>& layers,
                                         const nn::Model& model) {
  std::vector<sim::LayerProfile> blocks(static_cast<size_t>(model.blocks()));
  for (size_t i = 0; i < layers.size(); ++i) {
    const sim::LayerProfile& layer = layers[i];
    sim::LayerProfile& block = blocks[block_of(i, model)];
    const bool own = layers.size() < 3 ? i == 0 : i > 0 && i + 1 < layers.size();
    if (own) block.name = layer.name;
    block.share += layer.share;
    block.parameters += layer.parameters;
    block.activation_bytes += layer.activation_bytes;
    block.output_bytes = layer.output_bytes;
    block.channels = layer.channels;
  }
  return blocks;
}

/// Times each layer by itself, forward and backward: the model cut at every place where it has one. Says of
/// each parameter which block it belongs to.
std::vector<sim::LayerProfile> blocks_of(parallel::Replica& replica, Watched& watched,
                                         const tensor::Batch& batch,
                                         std::vector<sim::ParameterProfile>& parameters) {
  nn::Model& model = replica.model;
  const auto depth = static_cast<size_t>(model.depth());
  std::vector<sim::LayerProfile> layers(depth);
  if (batch.size() == 0 || depth == 0 || !replica.params.values.is_cpu()) return {};
  const auto examples = static_cast<double>(batch.size());
  std::vector<std::vector<double>> seconds(depth);
  std::vector<int> layer_of(replica.params.entries().size(), -1);
  constexpr int kTimes = 4;
  for (int time = 0; time < kTimes; ++time) {
    replica.params.zero_grads();
    model.set_mode({.training = true, .noise_key = 1});
    std::vector<at::Tensor> in(depth), out(depth);
    std::vector<double> forward(depth);
    at::Tensor loss;
    for (size_t i = 0; i < depth; ++i) {
      if (i > 0) in[i] = out[i - 1].detach().requires_grad_(out[i - 1].is_floating_point());
      const double before = allocated();
      const Stopwatch watch;
      const tensor::Autocast autocast(replica.precision, replica.params.values.device());
      out[i] = model.forward(in[i], batch, {static_cast<int>(i), static_cast<int>(i) + 1});
      if (i + 1 == depth) loss = model.loss(out[i], batch).sum;
      forward[i] = watch.seconds();
      layers[i].activation_bytes = std::max(0.0, allocated() - before) / examples;
      layers[i].output_bytes = 4 * static_cast<double>(out[i].numel()) / examples;
      layers[i].channels = out[i].dim() > 1 ? out[i].size(out[i].dim() == 4 ? 1 : -1) : 0;
    }
    for (size_t i = depth; i-- > 0;) {
      watched.restart();
      const Stopwatch watch;
      if (i + 1 == depth) {
        loss.backward();
      } else if (out[i].requires_grad() && in[i + 1].grad().defined()) {
        out[i].backward(in[i + 1].grad());
      }
      if (time > 0) seconds[i].push_back(forward[i] + watch.seconds());
      for (const auto& [entry, when] : watched.fired()) layer_of[entry] = static_cast<int>(i);
    }
  }
  double sum = 0;
  for (const auto& each : seconds) sum += median(each);
  for (size_t i = 0; i < depth; ++i) {
    std::vector<std::string> names;
    const auto& entries = replica.params.entries();
    for (size_t k = 0; k < entries.size(); ++k) {
      if (layer_of[k] != static_cast<int>(i)) continue;
      layers[i].parameters += entries[k].size;
      parameters[k].layer = static_cast<int64_t>(block_of(i, model));
      names.push_back(entries[k].name);
    }
    const std::string prefix = common_prefix(names);
    layers[i].name = prefix.empty() ? fmt::format("layer {}", i) : prefix;
    layers[i].share = median(seconds[i]) / sum;
  }
  return as_blocks(layers, model);
}

/// Layers were looked at with one batch; texts of others are padded to other lengths.
void take_mean_rows(const Seen& seen, sim::Profile& profile) {
  if (seen.rows == 0 || seen.real_rows == 0) return;
  profile.real_share = seen.real_rows / seen.rows;
  const double here = static_cast<double>(seen.last.fields.at("attention_mask").numel()) /
                      static_cast<double>(seen.last.size());
  for (size_t i = 0; i + 1 < profile.layers.size(); ++i)
    profile.layers[i].output_bytes *= seen.rows / seen.examples / here;
}

sim::BatchTime time_of(const std::vector<record::StepRecord>& steps, int64_t batch) {
  record::RunRecord run;
  summarise(steps, run);
  sim::BatchTime time{.batch = batch, .data_s = run.data_ms / 1e3, .peak_memory = peak_memory()};
  const bool parts = run.forward_ms + run.backward_ms + run.optimizer_ms > 0;
  // A device computes behind our back: a backward pass makes twice the products of a forward pass.
  time.forward_s = (parts ? run.forward_ms : run.compute_ms / 3) / 1e3;
  time.backward_s = (parts ? run.backward_ms : 2 * run.compute_ms / 3) / 1e3;
  time.update_s = run.optimizer_ms / 1e3;
  time.other_s = std::max(
      0.0, run.ms_per_iteration / 1e3 - time.forward_s - time.backward_s - time.update_s - time.data_s);
  return time;
}

}  // namespace

int64_t batch_of_worker(const spec::RunSpec& spec) {
  return std::max<int64_t>(1, spec.examples_per_step() / std::max<int64_t>(1, spec.replicas()));
}

sim::Profile probe_step(const spec::RunSpec& spec, const ComputeSetup& compute,
                        const StepProbeOptions& options) {
  const int64_t asked = batch_of_worker(spec);
  std::vector<int64_t> batches = options.batches;
  if (batches.empty()) batches = {std::max<int64_t>(1, asked / 2), asked, 2 * asked};
  int64_t main_batch = asked;  // where gradients and layers are timed
  if (options.batches.empty() && spec.pipeline.stages > 1) {
    // What a stage computes on at a time.
    main_batch = std::max<int64_t>(1, asked / (spec.train.accumulate * spec.micro_batches()));
    batches = {std::max<int64_t>(1, main_batch / 2), main_batch, asked};
  }
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  if (batches.front() < 1) throw ConfigError("a batch must have 1 example or more, got {}", batches.front());
  if (std::find(batches.begin(), batches.end(), main_batch) == batches.end())
    main_batch = batches[batches.size() / 2];
  double work = 0;
  for (const int64_t batch : batches) work += std::sqrt(static_cast<double>(batch));
  const int all = static_cast<int>(batches.size()) + 2;
  int done = 0;
  const auto tell_progress = [&](const std::string& what) {
    if (options.progress) options.progress(done, all, what);
  };

  tell_progress("loading");
  comm::Metered group(comm::open_alone());
  tasks::TaskSetup setup = tasks::family_of(spec.task.name).make(alone(spec, asked, options.rank), group);
  setup.test = setup.validation = nullptr;
  const at::Device device = parse_device(spec.compute.device, options.local_rank);
  const PrecisionChoice precision =
      choose_precision(tensor::parse_precision(spec.compute.precision), device, *setup.model);
  sim::Profile profile{.task = spec.task.name,
                       .model = spec.model.init_from.empty() ? spec.model.name : spec.model.init_from,
                       .optimizer = spec.optim.name,
                       .precision = tensor::name_of(precision.used),
                       .device = describe(device),
                       .cpu = compute.cpu,
                       .max_length = spec.max_length(),
                       .workers = spec.comm.workers,
                       .threads = compute.threads,
                       .cores = machine_cores(),
                       .training_examples = static_cast<double>(setup.train->size())};
  for (const int64_t batch : batches) {
    Watched* watched = nullptr;
    Seen seen;
    AssemblyOptions parts{.device = device, .precision = precision.used};
    if (batch == main_batch) {
      parts.strategy = [&](comm::Group&) {
        auto made = std::make_unique<Watched>();
        watched = made.get();
        return made;
      };
      parts.around_engine = [&](std::unique_ptr<parallel::Engine> engine) {
        return std::make_unique<Remembering>(std::move(engine), seen);
      };
    }
    Assembly assembly(alone(spec, batch, options.rank), setup, parallel::Mesh::of_replicas(group), group,
                      parts);
    if (options.together) options.together();
    tell_progress(fmt::format("steps of {} example{}", batch, batch == 1 ? "" : "s"));
    Counting steps(options.seconds * std::sqrt(static_cast<double>(batch)) / work, options.stop_requested);
    assembly.train(steps, false);
    profile.times.push_back(time_of(steps.steps(), batch));
    ++done;
    if (watched == nullptr) continue;
    parallel::Replica& replica = assembly.replica();
    const auto tables = replica.model.row_tables();
    const auto& entries = replica.params.entries();
    for (size_t i = 0; i < entries.size(); ++i) {
      const bool by_rows = std::any_of(tables.begin(), tables.end(), [&](const at::Tensor& table) {
        return replica.params.find(table) == &entries[i];
      });
      profile.parameters.push_back({.name = entries[i].name,
                                    .shape = entries[i].parameter.sizes().vec(),
                                    .ready = watched->ready(i),
                                    .rows = by_rows ? watched->rows(i) / static_cast<double>(batch) : 0});
    }
    if (options.together) options.together();
    tell_progress("layers");
    profile.layers = blocks_of(replica, *watched, seen.last, profile.parameters);
    take_mean_rows(seen, profile);
    for (const auto& [name, table] : replica.model.tied())
      profile.tied_bytes += static_cast<double>(table.nbytes());
  }
  if (options.together) options.together();
  ++done;
  tell_progress("codecs");
  profile.codecs = codec_speeds(spec::codec_names(), {.ratio = spec.codec.ratio, .rank = spec.codec.rank});
  ++done;
  tell_progress("done");
  return profile;
}

sim::Profile mean_of(const std::vector<sim::Profile>& profiles) {
  check(!profiles.empty(), "a mean of some profiles");
  sim::Profile mean = profiles.front();
  const auto n = static_cast<double>(profiles.size());
  const auto take_mean = [&](auto&& field) {
    double sum = 0;
    for (const sim::Profile& each : profiles) sum += field(each);
    field(mean) = sum / n;
  };
  for (size_t i = 0; i < mean.times.size(); ++i) {
    for (double sim::BatchTime::*part :
         {&sim::BatchTime::forward_s, &sim::BatchTime::backward_s, &sim::BatchTime::update_s,
          &sim::BatchTime::data_s, &sim::BatchTime::other_s}) {
      take_mean([&](auto& each) -> auto& { return each.times[i].*part; });
    }
    for (const sim::Profile& each : profiles)
      mean.times[i].peak_memory = std::max(mean.times[i].peak_memory, each.times[i].peak_memory);
  }
  for (size_t i = 0; i < mean.parameters.size(); ++i) {
    take_mean([&](auto& each) -> auto& { return each.parameters[i].ready; });
    take_mean([&](auto& each) -> auto& { return each.parameters[i].rows; });
  }
  for (size_t i = 0; i < mean.layers.size(); ++i) {
    take_mean([&](auto& each) -> auto& { return each.layers[i].share; });
  }
  for (size_t i = 0; i < mean.codecs.size(); ++i) {
    take_mean([&](auto& each) -> auto& { return each.codecs[i].encode_s; });
    take_mean([&](auto& each) -> auto& { return each.codecs[i].decode_s; });
  }
  return mean;
}

}  // namespace syncopate::run
