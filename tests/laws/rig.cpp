#include "tests/laws/rig.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/rng.h"
#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/comm/metering/metered.h"
#include "syncopate/data/sampler.h"
#include "syncopate/nn/bert/bert_heads.h"
#include "syncopate/parallel/engines/engine_around.h"
#include "syncopate/parallel/server/shard_server.h"
#include "syncopate/run/assemble.h"
#include "syncopate/run/options.h"
#include "syncopate/train/checkpoint.h"
#include "syncopate/train/evaluate.h"
#include "tests/contract/ranks.h"

namespace syncopate::test {
namespace {

constexpr int64_t kVocabulary = 90;
constexpr int64_t kLabels = 5;
constexpr int64_t kEvalBatch = 7;

class ToyData : public data::Dataset {
 public:
  ToyData(int64_t size, uint64_t seed) {
    for (int64_t i = 0; i < size; ++i) {
      Rng rng(mix_key(seed, i));
      std::vector<int64_t> words(3 + rng.below(12));
      for (int64_t& word : words) word = 1 + static_cast<int64_t>(rng.below(kVocabulary - 1));
      labels_.push_back(words.front() % kLabels);
      examples_.push_back(std::move(words));
    }
  }
  int64_t size() const override { return static_cast<int64_t>(examples_.size()); }
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t) const override {
    size_t longest = 0;
    for (const int64_t id : ids) longest = std::max(longest, examples_[static_cast<size_t>(id)].size());
    const auto rows = static_cast<int64_t>(ids.size());
    const auto columns = static_cast<int64_t>(longest);
    tensor::Batch batch;
    at::Tensor words = at::zeros({rows, columns}, at::kLong), mask = at::zeros({rows, columns}, at::kLong);
    at::Tensor labels = at::zeros({rows}, at::kLong);
    for (int64_t row = 0; row < rows; ++row) {
      const auto& example = examples_[static_cast<size_t>(ids[static_cast<size_t>(row)])];
      for (size_t column = 0; column < example.size(); ++column) {
        words[row][static_cast<int64_t>(column)] = example[column];
        mask[row][static_cast<int64_t>(column)] = 1;
      }
      labels[row] = labels_[static_cast<size_t>(ids[static_cast<size_t>(row)])];
      batch.real_tokens += static_cast<int64_t>(example.size());
    }
    batch.fields = {{"input_ids", words},
                    {"token_type_ids", at::zeros_like(words)},
                    {"attention_mask", mask},
                    {"labels", labels}};
    batch.ids.assign(ids.begin(), ids.end());
    return batch;
  }
  int64_t length(int64_t id) const override {
    return static_cast<int64_t>(examples_[static_cast<size_t>(id)].size());
  }
  uint64_t fingerprint() const override {
    uint64_t sum = checksum_of(labels_);
    for (const auto& words : examples_) sum = checksum_of(words, sum);
    return sum;
  }

 private:
  std::vector<std::vector<int64_t>> examples_;
  std::vector<int64_t> labels_;
};

/// Weighs every rank's own mean alike, however many examples it had.
class MeanOfMeans : public parallel::Strategy {
 public:
  MeanOfMeans(std::unique_ptr<parallel::Strategy> inner, const comm::Group& group,
              const std::vector<int64_t>& shares)
      : inner_(std::move(inner)), group_(group), shares_(shares) {}
  void start(parallel::Replica& replica) override { inner_->start(replica); }
  void before_backward(parallel::Replica& replica, const parallel::StepContext& context,
                       bool last_micro) override {
    inner_->before_backward(replica, context, last_micro);
  }
  parallel::Update step(parallel::Replica& replica, const parallel::StepContext& context) override {
    const auto global = static_cast<int64_t>(context.count);
    const data::Range range = shares_.empty() ? data::share(global, group_.size(), group_.rank())
                                              : data::share(global, shares_, group_.rank());
    const auto mine = static_cast<double>(range.size());
    replica.params.grads.mul_(context.count / (group_.size() * mine));
    return inner_->step(replica, context);
  }

 private:
  std::unique_ptr<parallel::Strategy> inner_;
  const comm::Group& group_;
  const std::vector<int64_t>& shares_;  ///< empty: equal
};

spec::RunSpec spec_of(const Rig& rig) {
  spec::RunSpec spec;
  spec.strategy = rig.strategy;
  spec.strategy.share_update = rig.share;
  spec.codec = rig.codec;
  spec.optim = rig.optim;
  spec.optim.plateau_factor = rig.plateau_factor;
  spec.optim.plateau_patience = 1;
  spec.comm.workers = rig.workers;
  spec.train.global_batch = rig.global_batch;
  spec.train.accumulate = rig.accumulate;
  spec.train.arrange = rig.arrange;
  spec.train.steps = rig.steps;
  spec.train.seed = static_cast<int64_t>(rig.seed);
  if (rig.eval_every > 0) spec.train.eval_every = std::to_string(rig.eval_every);
  spec.train.save_every = rig.save_every > 0 ? std::to_string(rig.save_every) : std::string("epoch");
  spec.train.eval_batch = kEvalBatch;
  spec.train.patience = rig.patience;
  spec.train.keep = rig.keep;
  spec.train.time_limit = rig.time_limit;
  spec.train.noise_scale = rig.noise_scale;
  spec.train.worker_evals = rig.worker_evals;
  return spec;
}

class LossListener : public train::Listener {
 public:
  LossListener(const Rig& rig, int rank, Trace& trace, std::vector<double>& losses)
      : losses_(losses),
        own_losses_(trace.own_losses[static_cast<size_t>(rank)]),
        trace_(trace),
        checkpoint_(rig.checkpoint),
        first_(rank == 0),
        free_(spec_of(rig).runs_free()),
        stop_after_(rig.stop_after) {}
  void phase(int64_t step, const char*) override { step_ = step; }
  void update(const record::StepRecord&, double own_loss) override {
    ++done_;
    own_losses_.push_back(own_loss);
  }
  void updates(const std::vector<record::StepRecord>& records) override {
    for (const record::StepRecord& record : records) {
      losses_.push_back(record.loss);
      if (!first_) continue;
      trace_.bytes.push_back(record.bytes_sent);
      trace_.records.push_back(record);
      trace_.rates.push_back(record.lr);
    }
  }
  void shares(int64_t, const std::vector<int64_t>& now) override { current_shares = now; }
  void eval(const record::EvalRecord& record) override {
    if (first_) trace_.evals.push_back(record);
  }
  void saved(int64_t step) override {
    if (first_) trace_.saved.emplace_back(step, saved_parameters(checkpoint_));
  }
  void resumed(const train::ResumePoint& point) override {
    if (first_) trace_.notes = point.notes;
  }
  bool stop_requested() override { return stop_after_ > 0 && now() >= stop_after_; }

  /// The step that is being made or was made last; where workers run free, of this rank's the next.
  int64_t now() const { return free_ ? done_ + 1 : step_; }
  std::vector<int64_t> current_shares;

 private:
  std::vector<double>&losses_, &own_losses_;
  Trace& trace_;
  std::filesystem::path checkpoint_;
  bool first_, free_;
  int64_t stop_after_, step_ = 0, done_ = 0;
};

class NoiseByRank : public parallel::EngineAround {
 public:
  NoiseByRank(std::unique_ptr<parallel::Engine> inner, int rank)
      : EngineAround(std::move(inner)), rank_(rank) {}
  parallel::Gradients run(parallel::Replica& replica, std::span<const tensor::Batch> micro,
                          uint64_t noise_key, const parallel::EngineEvents& events) override {
    return EngineAround::run(replica, micro, mix_key(noise_key, rank_), events);
  }

 private:
  int rank_;
};

std::unique_ptr<nn::Model> toy_bert(uint64_t seed, double dropout, bool plain = false) {
  nn::BertConfig config;
  config.vocab_size = kVocabulary;
  config.hidden = 16;
  config.layers = 2;
  config.heads = 2;
  config.ffn = 32;
  config.max_positions = 32;
  config.num_labels = kLabels;
  config.initializer_range = 0.2;
  config.set_dropout(dropout);
  auto model = nn::make_bert(config, seed);
  model->set_plain(plain);
  return model;
}

train::MakeMetric toy_metric() { return train::classification({.classes = kLabels, .top = 0, .parts = {}}); }

void train_rank(const Rig& rig, std::unique_ptr<comm::Group> mine, Trace& trace,
                std::vector<double>& losses) {
  const spec::RunSpec spec = spec_of(rig);
  if (mine->rank() >= rig.workers) return parallel::serve(*mine, run::server_options(spec));
  comm::Metered world(std::move(mine));
  const auto part = spec.servers() > 0 ? world.part(0, world.rank()) : nullptr;
  comm::Metered& group = part ? *part : world;
  const auto rank = static_cast<size_t>(group.rank());
  tasks::TaskSetup setup;
  // Ranks begin apart: only the strategy's start makes them equal.
  setup.model = toy_bert(mix_key(rig.seed, group.rank()), rig.dropout, rig.plain);
  setup.train = toy_data(rig.examples, 17);
  setup.test = toy_data(31, 18);
  setup.metric = toy_metric();
  if (spec.validation().on()) {
    setup.validation = toy_data(23, 19);
    setup.validation_metric = toy_metric();
  }
  LossListener listener(rig, group.rank(), trace, losses);
  run::AssemblyOptions options;
  options.with_servers = &world;
  options.checkpoint = rig.checkpoint;
  options.strategy = rig.make;
  if (rig.mean_of_means) {
    options.around_strategy = [&](std::unique_ptr<parallel::Strategy> inner) {
      return std::make_unique<MeanOfMeans>(std::move(inner), group, listener.current_shares);
    };
  }
  if (rig.noise_by_rank) {
    options.around_engine = [&](std::unique_ptr<parallel::Engine> inner) {
      return std::make_unique<NoiseByRank>(std::move(inner), group.rank());
    };
  }
  if (!rig.steps_per_second.empty()) {
    options.clock = [&] { return static_cast<double>(listener.now()) / rig.steps_per_second[rank]; };
  }
  if (!rig.seconds_per_example.empty()) {
    options.balance =
        train::BalanceOptions{.first = 4, .every = rig.balance_every, .cost = [&](int64_t load, double) {
                                return static_cast<double>(load) * rig.seconds_per_example[rank];
                              }};
  }
  run::Assembly assembly = run::assemble(spec, setup, parallel::Mesh::of_replicas(group), group, options);
  const train::TrainResult result = assembly.train(listener, rig.resume);
  const tensor::FlatParams& params = assembly.replica().params;
  params.check_views();
  trace.parameters[rank] = params.values.clone();
  trace.ended[rank] = result.ended;
  trace.steps[rank] = result.steps;
  if (group.rank() > 0) return;
  trace.shared = assembly.replica().shared != nullptr;
  trace.shares = result.shares;
  trace.start_hash = result.start_hash;
  trace.updates = result.updates;
  trace.staleness = result.staleness;
  trace.test = result.eval;
  trace.validation = result.validation;
  trace.kept_step = result.kept_step;
  trace.sent = result.sent;
  trace.bytes_sent = result.bytes_sent;
  trace.noise_scale = result.noise_scale;
  trace.worker_evals = result.worker_evals;
  if (!result.eval) return;
  trace.accuracy = result.eval->measures.at("accuracy");
  trace.evaluated = result.eval->model;
}

}  // namespace

std::shared_ptr<const data::Dataset> toy_data(int64_t size, uint64_t seed) {
  return std::make_shared<ToyData>(size, seed);
}

at::Tensor saved_parameters(const std::filesystem::path& checkpoint) {
  const auto model = toy_bert(0, 0);
  const tensor::FlatParams params(model->parameters());
  for (const auto& [saved, tensor] : train::load_checkpoint(checkpoint).tensors) {
    for (const auto& entry : params.entries()) {
      if (saved == "model." + entry.name) params.value_of(entry).copy_(tensor.view({-1}));
    }
  }
  return params.values;
}

record::EvalRecord evaluate_parameters(const at::Tensor& parameters, int workers) {
  record::EvalRecord result;
  run_ranks(workers, [&](comm::Group& group) {
    const auto model = toy_bert(0, 0);
    tensor::FlatParams(model->parameters()).values.copy_(parameters);
    const auto metric = toy_metric()();
    const auto record =
        train::evaluate(*model, *toy_data(31, 18), group, *metric, {.batch_size = kEvalBatch});
    if (group.rank() == 0) result = record;
  });
  return result;
}

Trace train(const Rig& rig) {
  at::set_num_threads(1);
  Trace trace;
  const auto workers = static_cast<size_t>(rig.workers);
  trace.parameters.resize(workers);
  trace.own_losses.resize(workers);
  trace.ended.resize(workers);
  trace.steps.resize(workers);
  const int ranks = rig.workers + static_cast<int>(spec_of(rig).servers());
  std::vector<std::vector<double>> losses(static_cast<size_t>(ranks));
  auto groups = comm::open_in_process(ranks, std::chrono::seconds(60));
  run_threads(ranks, [&](int rank) {
    at::set_num_threads(1);
    const auto mine = static_cast<size_t>(rank);
    train_rank(rig, std::move(groups[mine]), trace, losses[mine]);
  });
  trace.losses = losses[0];
  return trace;
}

Resumed stopped_and_resumed(const Rig& straight, const std::filesystem::path& path, int64_t stop_after) {
  Resumed parts{.first = straight, .second = straight, .before = {}, .after = {}, .losses = {}};
  parts.first.checkpoint = parts.second.checkpoint = path;
  parts.first.stop_after = stop_after;
  parts.second.resume = true;
  parts.before = train(parts.first);
  parts.after = train(parts.second);
  parts.losses = parts.before.losses;
  parts.losses.insert(parts.losses.end(), parts.after.losses.begin(), parts.after.losses.end());
  return parts;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  check(a.size() == b.size() && !a.empty(), "traces of one length");
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(a[i]));
  return largest;
}

}  // namespace syncopate::test
