// How long is one training step? The step that `syncopate train` makes, on random tokens, in real processes
// over Gloo. Prints one JSON object in the form of the peer's (bench/step_against_peer.py sets them side by
// side).
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/reducer.h"
#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/comm/metering/metered.h"
#include "syncopate/nn/bert/bert_heads.h"
#include "syncopate/nn/layers/initialize.h"
#include "syncopate/nn/layers/product.h"
#include "syncopate/nn/resnet/resnet.h"
#include "syncopate/parallel/step_runner.h"
#include "syncopate/run/assemble.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/device.h"
#include "syncopate/run/launch.h"
#include "syncopate/run/world.h"

namespace syncopate::bench {
namespace {

struct Options {
  std::string mode = "ddp", model = "bert-mini", precision = "fp32";
  int workers = 2, threads = 1;
  int64_t vocab = 30522, batch = 8, length = 128, channels = 3, side = 32, steps = 20, warmup = 3;
  double dropout = 0.1;
  int64_t every = 8;
  bool whole_last_layer = false, dense_rows = false, overlap_average = false;
  std::vector<std::string> settings;
};

bool of_images(const Options& options) { return nn::is_resnet_preset(options.model); }
bool of_masked_words(const Options& options) { return options.model == "mlm"; }
/// The peer's masked language model is a bert-mini.
std::string bert_of(const Options& options) { return of_masked_words(options) ? "bert-mini" : options.model; }

nn::BertConfig config_of(const Options& options) {
  nn::BertConfig config = nn::preset(bert_of(options));
  config.vocab_size = options.vocab;
  config.num_labels = 2;
  config.set_dropout(options.dropout);
  config.inner_dropout = options.dropout;
  return config;
}

std::unique_ptr<nn::Model> make_model(const Options& options) {
  if (of_images(options)) {
    nn::ResNetConfig config = nn::resnet_preset(options.model);
    config.channels = options.channels;
    return nn::make_resnet(config, 1);
  }
  std::unique_ptr<nn::Bert> model;
  if (of_masked_words(options)) {
    model = nn::make_bert<nn::BertMaskedLm>(config_of(options), 1);
  } else {
    model = nn::make_bert(config_of(options), 1);
  }
  model->set_whole_last_layer(options.whole_last_layer);
  return model;
}

tensor::Batch random_images(const Options& options, uint64_t key) {
  tensor::Batch batch;
  const at::Tensor images = at::empty({options.batch, options.channels, options.side, options.side});
  nn::fill_normal(images, 1, key);
  batch.fields = {{"images", images}, {"labels", at::arange(options.batch, at::kLong) % 10}};
  batch.ids.resize(static_cast<size_t>(options.batch));
  return batch;
}

tensor::Batch random_batch(const Options& options, uint64_t key) {
  if (of_images(options)) return random_images(options, key);
  Rng rng(key);
  at::Tensor words = at::empty({options.batch, options.length}, at::kLong);
  int64_t* const out = words.data_ptr<int64_t>();
  for (int64_t i = 0; i < words.numel(); ++i)
    out[i] = static_cast<int64_t>(rng.below(static_cast<uint64_t>(options.vocab)));
  tensor::Batch batch;
  batch.fields = {{"input_ids", words},
                  {"token_type_ids", at::zeros_like(words)},
                  {"attention_mask", at::ones_like(words)},
                  {"labels", at::arange(options.batch, at::kLong) % 2}};
  if (of_masked_words(options)) {  // every seventh position, as the peer does
    const at::Tensor masked = at::arange(options.length, at::kLong).slice(0, 0, options.length, 7);
    const at::Tensor rows = at::arange(options.batch, at::kLong) * options.length;
    batch.fields["masked"] = (rows.unsqueeze(1) + masked.unsqueeze(0)).flatten();
    batch.fields["labels"] = words.flatten().index_select(0, batch.fields["masked"]);
  }
  batch.real_tokens = words.numel();
  batch.ids.resize(static_cast<size_t>(options.batch));
  return batch;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Of all threads of this process.
double cpu_seconds() {
  struct timespec spent {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

/// How long the threads that this process has now stood ready while others had the processors; 0 where the
/// kernel does not tell.
double queued_seconds() {
  double total = 0;
  std::error_code none;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", none)) {
    std::ifstream file(thread.path() / "schedstat");
    double running = 0, queued = 0;
    if (file >> running >> queued) total += 1e-9 * queued;
  }
  return total;
}

/// Milliseconds of a step's large matrix products, forward and backward, measured by themselves.
double products_ms(const Options& options, const nn::BertConfig& config, tensor::Precision precision) {
  const auto cost = [precision](int64_t rows, int64_t in, int64_t out) {
    const at::Tensor x = at::randn({rows, in}), w = at::randn({out, in}), g = at::randn({rows, out});
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) {
      const Stopwatch watch;
      const at::Tensor y = nn::product(x, w.t(), precision), dx = nn::product(g, w, precision),
                       dw = nn::product(g.t(), x, precision);
      times.push_back(watch.seconds());
    }
    return 1e3 * median(times);
  };
  const int64_t rows = options.batch * options.length, d = config.hidden, f = config.ffn;
  double total = 0;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const bool first_only = layer + 1 == config.layers && !options.whole_last_layer;
    const int64_t asked = first_only ? options.batch : rows;
    total +=
        cost(rows, d, 2 * d) + cost(asked, d, d) + cost(asked, d, d) + cost(asked, d, f) + cost(asked, f, d);
  }
  return total;
}

/// The batches are made outside of the clock: the loader has nothing to do.
class NoData : public data::Dataset {
 public:
  int64_t size() const override { return 1; }
  uint64_t fingerprint() const override { return 1; }
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t) const override {
    tensor::Batch batch;
    batch.ids.assign(ids.begin(), ids.end());
    return batch;
  }
};

spec::RunSpec spec_of(const Options& options, int workers) {
  spec::RunSpec spec;
  if (options.mode != "reducer") spec.strategy.name = options.mode;
  spec.strategy.sparse_rows = !options.dense_rows;
  spec.strategy.every = options.every;
  spec.strategy.overlap_average = options.overlap_average;
  spec.optim.clip = 0;
  spec.comm.workers = workers;
  spec.train.steps = options.warmup + options.steps;
  for (const std::string& setting : options.settings) spec.fields().set_assignment(setting);
  return spec;
}

int work(const Options& options) {
  const run::ComputeSetup compute = run::set_up_compute(options.threads);
  const run::World world = run::find_world({}, run::environment_of_process());
  comm::Membership membership = run::join(world, "auto", std::chrono::seconds(120));
  comm::Metered group(std::move(membership.group));
  const spec::RunSpec spec = spec_of(options, group.size());
  tasks::TaskSetup setup;
  setup.model = make_model(options);
  setup.train = std::make_shared<NoData>();
  const run::PrecisionChoice precision =
      run::agree_on_precision(tensor::parse_precision(options.precision), c10::kCPU, *setup.model, group);
  run::AssemblyOptions parts;
  parts.precision = precision.used;
  if (options.mode == "reducer") {
    parts.strategy = [](comm::Group& ranks) {
      const char* const store = ::getenv("BENCH_STORE");
      auto reducer = make_reducer(ranks.rank(), ranks.size(), store != nullptr ? store : "");
      if (!reducer) throw ConfigError("this libtorch's c10d::Reducer has another interface; use Debian's");
      return reducer;
    };
  }
  run::Assembly assembly = run::assemble(spec, setup, parallel::Mesh::of_replicas(group), group, parts);
  assembly.strategy().start(assembly.replica());
  parallel::StepRunner runner(assembly.replica(), assembly.engine(), assembly.strategy(), assembly.mesh());
  std::vector<double> times, applies, waits;
  double cpu_before = cpu_seconds(), queued_before = queued_seconds();
  for (int64_t step = 0; step < options.warmup + options.steps; ++step) {
    const tensor::Batch batch = random_batch(options, mix_key(7, group.rank(), step));
    const comm::Meter before = group.meter();
    const Stopwatch watch;
    const auto made =
        runner.step({&batch, 1}, {.step = step, .lr = 2e-5, .noise_key = mix(static_cast<uint64_t>(step))});
    if (step + 1 == options.warmup) {
      cpu_before = cpu_seconds();
      queued_before = queued_seconds();
    }
    if (step < options.warmup) continue;
    times.push_back(watch.seconds());
    applies.push_back(made.update.apply_seconds);
    waits.push_back((group.meter() - before).total().seconds);
  }
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const double cpu = (cpu_seconds() - cpu_before) / static_cast<double>(options.steps);
  const double queued = (queued_seconds() - queued_before) / static_cast<double>(options.steps);
  at::Tensor worst = at::zeros({5}, at::kDouble);
  // Where workers talk now and then, a median would leave out just what that costs; the peer does the same.
  const bool rarely = options.mode == "local-sgd" || options.mode == "diloco";
  const auto typical = [&](const std::vector<double>& values) {
    return rarely ? mean(values) : median(values);
  };
  worst[0] = 1e3 * typical(times);
  worst[1] = static_cast<double>(usage.ru_maxrss) / 1024;
  worst[2] = 1e3 * typical(applies);
  worst[3] = 1e3 * typical(waits);
  worst[4] = 1e3 * cpu;
  group.all_reduce(worst, comm::Op::kMax).wait();
  // Step by step: who comes last waits for nobody, only for the exchange itself.
  const auto of_steps = [&](const std::vector<double>& values, comm::Op op) {
    const at::Tensor steps = at::tensor(values, at::kDouble);
    group.all_reduce(steps, op).wait();
    return 1e3 * typical({steps.data_ptr<double>(), steps.data_ptr<double>() + steps.numel()});
  };
  std::vector<double> own;
  for (size_t i = 0; i < times.size(); ++i) own.push_back(times[i] - waits[i]);
  // A row for each worker: is it always the same one that is slow, and does it compute or stand in a queue?
  const at::Tensor of_workers = at::zeros({group.size(), 3}, at::kDouble);
  of_workers[group.rank()] = at::tensor({1e3 * mean(own), 1e3 * cpu, 1e3 * queued}, at::kDouble);
  group.all_reduce(of_workers, comm::Op::kSum).wait();
  const auto by_worker = [&](int64_t column) {
    std::vector<double> values;
    for (int64_t k = 0; k < of_workers.size(0); ++k)
      values.push_back(std::round(of_workers[k][column].item<double>()));
    return values;
  };
  const double least = of_steps(waits, comm::Op::kMin), slowest = of_steps(own, comm::Op::kMax);
  // While the other ranks do the same: one core each.
  const bool classifier = !of_images(options) && !of_masked_words(options);
  const double products = classifier ? products_ms(options, config_of(options), precision.used) : 0;
  if (group.rank() == 0) {
    const double ms = worst[0].item<double>(), apply = worst[2].item<double>(),
                 wait = worst[3].item<double>();
    const nlohmann::ordered_json result{
        {"mode", options.mode},
        {"model", options.model},
        {"precision", tensor::name_of(precision.used)},
        {"workers", group.size()},
        {"batch", options.batch},
        {"seq", options.length},
        {"ms_per_iteration", ms},
        {"examples_per_s", 1e3 * static_cast<double>(options.batch * group.size()) / ms},
        {"peak_rss_mib", worst[1].item<double>()},
        {"products_ms", products},
        {"optimizer_ms", apply},
        {"exchange_ms", wait},
        {"exchange_of_the_last_ms", least},
        {"slowest_own_ms", slowest},
        {"cpu_ms", worst[4].item<double>()},
        {"own_ms_by_worker", by_worker(0)},
        {"cpu_ms_by_worker", by_worker(1)},
        {"queued_ms_by_worker", by_worker(2)},
        {"other_ms", ms - products - apply - wait},
        {"compute", compute.sentence()}};
    fmt::print("{}\n", result.dump());
  }
  membership.leave();
  return 0;
}

int run_bench(int argc, char** argv) {
  Options options;
  CLI::App app{"One training step, in milliseconds"};
  app.add_option("--mode", options.mode,
                 "single, gather-scatter, all-reduce, ddp, local-sgd, diloco or reducer (c10d's)")
      ->capture_default_str();
  app.add_option("--model", options.model,
                 "a BERT preset (two classes), mlm (a bert-mini), resnet-18 or resnet-8")
      ->capture_default_str();
  app.add_option("--channels", options.channels)->capture_default_str();
  app.add_option("--side", options.side)->capture_default_str();
  app.add_option("--workers", options.workers)->capture_default_str();
  app.add_option("--threads", options.threads)->capture_default_str();
  app.add_option("--precision", options.precision, "fp32 or bf16, where that pays")->capture_default_str();
  app.add_option("--vocab", options.vocab)->capture_default_str();
  app.add_option("--batch", options.batch)->capture_default_str();
  app.add_option("--seq", options.length)->capture_default_str();
  app.add_option("--steps", options.steps)->capture_default_str();
  app.add_option("--warmup", options.warmup)->capture_default_str();
  app.add_option("--dropout", options.dropout)->capture_default_str();
  app.add_flag("--whole-last-layer", options.whole_last_layer,
               "compute positions that nothing reads, as the peer does");
  app.add_flag("--dense-rows", options.dense_rows,
               "ddp: exchange the whole embedding table, as the peer does");
  app.add_option("--every", options.every, "local-sgd, diloco: steps between averages")
      ->capture_default_str();
  app.add_option("--set", options.settings, "a setting of the strategy or the codec, like codec.name=int8")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--overlap-average", options.overlap_average, "local-sgd: average behind the next steps");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (run::find_world({}, run::environment_of_process()).is_worker() || options.workers == 1)
    return work(options);
  run::set_thread_environment(options.threads);
  run::LaunchOptions launch;
  launch.workers = options.workers;
  for (int i = 0; i < argc; ++i) launch.argv.emplace_back(argv[i]);
  const std::string store = fmt::format("/tmp/syncopate-bench-{}", ::getpid());
  launch.environment = {{"BENCH_STORE", store}};
  const run::LaunchResult result = run::launch(launch);
  ::unlink(store.c_str());
  if (!result.sentence.empty()) fmt::print(stderr, "{}\n", result.sentence);
  return result.exit_code;
}

}  // namespace
}  // namespace syncopate::bench

int main(int argc, char** argv) {
  using namespace syncopate;
  int code = 1;
  try {
    run::die_with_parent();
    run::prepare_process(argv);
    code = bench::run_bench(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
  }
  std::fflush(stdout);
  ::_exit(code);
}
