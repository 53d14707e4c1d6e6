#include "tests/laws/rig.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <exception>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/comm/inproc.h"
#include "syncopate/comm/metered.h"
#include "syncopate/data/loader.h"
#include "syncopate/nn/bert/bert_heads.h"
#include "syncopate/parallel/engines/local_engine.h"
#include "syncopate/parallel/server/shard_server.h"
#include "syncopate/run/build.h"
#include "syncopate/train/checkpoint.h"
#include "syncopate/train/evaluate.h"
#include "syncopate/train/trainer.h"
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
  void before_backward(parallel::Replica& replica, bool last_micro) override {
    inner_->before_backward(replica, last_micro);
  }
  void step(parallel::Replica& replica) override {
    const auto global = static_cast<int64_t>(replica.count);
    const data::Range range = shares_.empty() ? data::share(global, group_.size(), group_.rank())
                                              : data::share(global, shares_, group_.rank());
    const auto mine = static_cast<double>(range.size());
    replica.params.grads.mul_(replica.count / (group_.size() * mine));
    inner_->step(replica);
  }

 private:
  std::unique_ptr<parallel::Strategy> inner_;
  const comm::Group& group_;
  const std::vector<int64_t>& shares_;  ///< empty: equal
};

class LossListener : public train::Listener {
 public:
  LossListener(const Rig& rig, bool first, Trace& trace, std::vector<double>& losses)
      : losses_(losses),
        trace_(trace),
        checkpoint_(rig.checkpoint),
        first_(first),
        stop_after_(rig.stop_after) {}
  void step(const record::StepRecord& record, double) override {
    losses_.push_back(record.loss);
    if (first_) {
      trace_.bytes.push_back(record.bytes_sent);
      trace_.rates.push_back(record.lr);
    }
    ++done;
  }
  void update(const record::StepRecord&, double) override { ++done; }
  void updates(const std::vector<record::StepRecord>& records) override {
    for (const record::StepRecord& record : records) losses_.push_back(record.loss);
  }
  void shares(int64_t, const std::vector<int64_t>& now) override { current_shares = now; }
  void eval(const record::EvalRecord& record) override {
    if (first_) trace_.evals.push_back(record);
  }
  void saved(int64_t step) override {
    if (!first_) return;
    for (const auto& [name, tensor] : train::load_checkpoint(checkpoint_).tensors) {
      if (name == "parameters") trace_.saved.emplace_back(step, tensor);
    }
  }
  bool stop_requested() override { return stop_after_ > 0 && done + 1 >= stop_after_; }

  int64_t done = 0;
  std::vector<int64_t> current_shares;

 private:
  std::vector<double>& losses_;
  Trace& trace_;
  std::filesystem::path checkpoint_;
  bool first_;
  int64_t stop_after_;
};

run::RunSpec spec_of(const Rig& rig) {
  run::RunSpec spec;
  spec.strategy = rig.strategy;
  spec.codec = rig.codec;
  spec.optim = rig.optim;
  spec.comm.workers = rig.workers;
  return spec;
}

std::unique_ptr<nn::Model> toy_bert(uint64_t seed, double dropout) {
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
  return nn::make_bert(config, seed);
}

void train_rank(const Rig& rig, std::unique_ptr<comm::Group> mine, Trace& trace,
                std::vector<double>& losses) {
  const run::RunSpec spec = spec_of(rig);
  if (mine->rank() >= rig.workers) return parallel::serve(*mine, run::server_options(spec));
  comm::Metered world(std::move(mine));
  const auto part = spec.servers() > 0 ? world.part(0, world.rank()) : nullptr;
  comm::Metered& group = part ? *part : world;
  // Ranks begin apart: only the strategy's start makes them equal.
  const auto model = toy_bert(mix_key(rig.seed, group.rank()), rig.dropout);
  tensor::FlatParams params(model->parameters());
  const auto optimizer = run::make_worker_optimizer(spec, params);
  parallel::Replica replica{
      .model = *model, .params = params, .optimizer = *optimizer, .clip = rig.optim.clip};
  auto strategy = rig.make ? rig.make(group) : run::make_strategy(spec, group, rig.steps, &world);
  LossListener listener(rig, group.rank() == 0, trace, losses);
  if (rig.mean_of_means)
    strategy = std::make_unique<MeanOfMeans>(std::move(strategy), group, listener.current_shares);
  parallel::LocalEngine engine;
  const bool free = spec.runs_free();
  const int64_t updates_per_step = free ? rig.workers : 1;
  data::Loader loader(toy_data(rig.examples, 17), {.global_batch = rig.global_batch / updates_per_step,
                                                   .workers = free ? 1 : rig.workers,
                                                   .rank = free ? 0 : group.rank(),
                                                   .accumulate = rig.accumulate,
                                                   .seed = rig.seed,
                                                   .on_demand = free});
  const auto schedule = run::make_schedule(rig.optim, rig.steps, rig.global_batch);
  const auto test = toy_data(31, 18);
  const auto rank = static_cast<size_t>(group.rank());
  train::ControlOptions control{.patience = rig.patience,
                                .plateau_factor = rig.plateau_factor,
                                .plateau_patience = 1,
                                .time_limit = rig.time_limit};
  if (!rig.steps_per_second.empty()) {
    control.clock = [&] { return static_cast<double>(listener.done + 1) / rig.steps_per_second[rank]; };
  }
  std::optional<train::BalanceOptions> balance;
  if (!rig.seconds_per_example.empty()) {
    balance =
        train::BalanceOptions{.first = 4, .every = rig.balance_every, .cost = [&](int64_t examples, double) {
                                return static_cast<double>(examples) * rig.seconds_per_example[rank];
                              }};
  }
  train::Trainer trainer({.replica = replica,
                          .engine = engine,
                          .strategy = *strategy,
                          .group = group,
                          .loader = loader,
                          .test = test.get(),
                          .metric = train::classification({.classes = kLabels, .top = 0, .parts = {}}),
                          .schedule = schedule,
                          .listener = listener},
                         {.steps = rig.steps * updates_per_step,
                          .updates_per_step = updates_per_step,
                          .eval_every = rig.eval_every * updates_per_step,
                          .save_every = rig.save_every * updates_per_step,
                          .eval_batch = kEvalBatch,
                          .seed = rig.seed,
                          .control = control,
                          .balance = balance,
                          .checkpoint = rig.checkpoint,
                          .inputs = {},
                          .environment = nlohmann::ordered_json::object()});
  const train::TrainResult result = trainer.run(rig.resume);
  params.check_views();
  trace.parameters[rank] = params.values.clone();
  trace.ended[rank] = result.ended;
  trace.steps[rank] = result.steps;
  if (group.rank() > 0) return;
  trace.shares = result.shares;
  trace.updates = result.updates;
  trace.staleness = result.staleness;
  if (!result.eval) return;
  trace.accuracy = result.eval->measures.at("accuracy");
  trace.evaluated = result.eval->model;
}

}  // namespace

std::shared_ptr<const data::Dataset> toy_data(int64_t size, uint64_t seed) {
  return std::make_shared<ToyData>(size, seed);
}

record::EvalRecord evaluate_parameters(const at::Tensor& parameters, int workers) {
  record::EvalRecord result;
  run_ranks(workers, [&](comm::Group& group) {
    const auto model = toy_bert(0, 0);
    tensor::FlatParams(model->parameters()).values.copy_(parameters);
    const auto metric = train::classification({.classes = kLabels, .top = 0, .parts = {}})();
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
  trace.ended.resize(workers);
  trace.steps.resize(workers);
  std::vector<std::vector<double>> losses(workers);
  std::vector<std::exception_ptr> failures(workers);
  const auto ranks = workers + static_cast<size_t>(spec_of(rig).servers());
  losses.resize(ranks);
  failures.resize(ranks);
  auto groups = comm::open_in_process(static_cast<int>(ranks), std::chrono::seconds(60));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        train_rank(rig, std::move(groups[rank]), trace, losses[rank]);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
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
