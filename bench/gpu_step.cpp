// How long is one training step on a GPU, and does it compute what it should? The step that `syncopate train`
// makes, on random tokens or images; several workers share the GPU. Prints one JSON object.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/comm/gpus.h"
#include "syncopate/comm/metering/metered.h"
#include "syncopate/nn/bert/bert_heads.h"
#include "syncopate/nn/gpt/gpt.h"
#include "syncopate/nn/layers/initialize.h"
#include "syncopate/nn/resnet/resnet.h"
#include "syncopate/parallel/step_runner.h"
#include "syncopate/run/assemble.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/device.h"
#include "syncopate/run/gpu_service.h"
#include "syncopate/run/launch.h"
#include "syncopate/run/world.h"

namespace syncopate::bench {
namespace {

struct Options {
  std::string mode = "single", model = "bert-base", precision = "bf16", device = "cuda";
  int workers = 1;
  int64_t batch = 32, length = 128, steps = 60, warmup = 8;
  double dropout = 0.1, attention_dropout = -1, clip = 0, padded = 0;
  bool compare = false, no_mps = false;
  std::vector<std::string> settings;
};

bool of_images(const Options& options) { return nn::is_resnet_preset(options.model); }
bool of_next_words(const Options& options) { return nn::is_gpt_preset(options.model); }

std::unique_ptr<nn::Model> make_model(const Options& options) {
  if (of_images(options)) return nn::make_resnet(nn::resnet_preset(options.model), 1);
  if (of_next_words(options)) {
    nn::GptConfig config = nn::gpt_preset(options.model);
    config.set_dropout(options.dropout);
    return nn::make_gpt(config, 1);
  }
  nn::BertConfig config = nn::preset(options.model);
  config.num_labels = 2;
  config.set_dropout(options.dropout);
  if (options.attention_dropout >= 0) config.attention_dropout = options.attention_dropout;
  return nn::make_bert(config, 1);
}

int64_t vocabulary_of(const Options& options) {
  return of_next_words(options) ? nn::gpt_preset(options.model).vocab_size
                                : nn::preset(options.model).vocab_size;
}

tensor::Batch random_batch(const Options& options, uint64_t key) {
  Rng rng(key);
  tensor::Batch batch;
  for (int64_t i = 0; i < options.batch; ++i) batch.ids.push_back(static_cast<int64_t>(rng.below(1 << 20)));
  const at::Tensor labels = at::arange(options.batch, at::kLong) % 2;
  if (of_images(options)) {
    const at::Tensor images = at::empty({options.batch, 3, 32, 32});
    nn::fill_normal(images, 1, key);
    batch.fields = {{"images", images}, {"labels", labels}};
    return batch;
  }
  at::Tensor words = at::empty({options.batch, options.length}, at::kLong);
  for (int64_t i = 0; i < words.numel(); ++i)
    words.data_ptr<int64_t>()[i] =
        static_cast<int64_t>(rng.below(static_cast<uint64_t>(vocabulary_of(options))));
  at::Tensor mask = at::ones_like(words);
  for (int64_t i = 0; i < options.batch; ++i) {
    const auto most = static_cast<uint64_t>(options.padded * static_cast<double>(options.length));
    const int64_t short_by = most > 0 ? static_cast<int64_t>(rng.below(most)) : 0;
    mask[i].narrow(0, options.length - short_by, short_by).zero_();
  }
  words.mul_(mask);
  batch.fields = {{"input_ids", words}, {"token_type_ids", at::zeros_like(words)}, {"attention_mask", mask}};
  batch.fields["labels"] = of_next_words(options) ? words : labels;
  batch.real_tokens = mask.sum().item<int64_t>();
  return batch;
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
  spec.strategy.name = options.mode;
  spec.optim.clip = options.clip;
  spec.comm.workers = workers;
  spec.compute.device = options.device;
  spec.compute.precision = options.precision;
  spec.train.steps = options.warmup + options.steps;
  for (const std::string& setting : options.settings) spec.fields().set_assignment(setting);
  return spec;
}

/// One rank's parts, ready for steps.
class Bench {
 public:
  Bench(const Options& options, comm::Metered& group)
      : spec_(spec_of(options, group.size())),
        setup_(make_setup(options)),
        assembly_(spec_, setup_, parallel::Mesh::of_replicas(group), group,
                  {.device = run::parse_device(spec_.compute.device),
                   .precision = tensor::parse_precision(spec_.compute.precision),
                   .note = [](const std::string& text) { fmt::print(stderr, "note: {}\n", text); }}) {
    assembly_.strategy().start(assembly_.replica());
  }

  run::Assembly& assembly() { return assembly_; }
  void wait() { (void)assembly_.replica().params.values.narrow(0, 0, 1).item<float>(); }  ///< for the device

 private:
  static tasks::TaskSetup make_setup(const Options& options) {
    tasks::TaskSetup setup;
    setup.model = make_model(options);
    setup.train = std::make_shared<NoData>();
    return setup;
  }

  spec::RunSpec spec_;
  tasks::TaskSetup setup_;
  run::Assembly assembly_;
};

int measure(const Options& options, comm::Metered& group) {
  Bench bench(options, group);
  run::Assembly& parts = bench.assembly();
  parallel::StepRunner runner(parts.replica(), parts.engine(), parts.strategy(), parts.mesh());
  std::vector<tensor::Batch> batches;
  for (int i = 0; i < 4; ++i) batches.push_back(random_batch(options, mix_key(7, group.rank(), i)));
  double loss = 0;
  const auto steps = [&](int64_t first, int64_t count) {
    for (int64_t step = first; step < first + count; ++step) {
      const auto made =
          runner.step({&batches[static_cast<size_t>(step) % batches.size()], 1},
                      {.step = step, .lr = 2e-5, .noise_key = mix(static_cast<uint64_t>(step))});
      loss = made.sum / made.count;
    }
  };
  steps(0, options.warmup);
  // The host runs ahead of the device: what counts is the time of many steps.
  std::vector<double> times;
  constexpr int64_t kBlock = 10;
  const comm::Meter before = group.meter();
  for (int64_t done = 0; done < options.steps; done += kBlock) {
    bench.wait();
    group.barrier();
    const Stopwatch watch;
    steps(options.warmup + done, kBlock);
    bench.wait();
    times.push_back(1e3 * watch.seconds() / kBlock);
  }
  const comm::Meter sent = group.meter() - before;
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  const at::Tensor worst = at::full({1}, times[times.size() / 2], at::kDouble);
  group.all_reduce(worst, comm::Op::kMax).wait();
  if (group.rank() == 0) {
    const double ms = worst.item<double>();
    const nlohmann::ordered_json result{
        {"mode", options.mode},
        {"model", options.model},
        {"precision", options.precision},
        {"workers", group.size()},
        {"batch", options.batch},
        {"seq", options.length},
        {"settings", options.settings},
        {"ms_per_step", ms},
        {"examples_per_s", 1e3 * static_cast<double>(options.batch * group.size()) / ms},
        {"exchange_ms", 1e3 * sent.total().seconds / static_cast<double>(options.steps)},
        {"loss", loss}};
    fmt::print("{}\n", result.dump());
  }
  return 0;
}

struct Passes {
  double loss = 0;
  at::Tensor grads;
};

/// The gradient of one batch, as often as it takes a graph to be recorded.
Passes passes(const Options& options, comm::Metered& group) {
  Bench bench(options, group);
  parallel::Replica& replica = bench.assembly().replica();
  const tensor::Batch batch = random_batch(options, 7);
  Passes made;
  for (int i = 0; i < 3; ++i) {
    replica.params.zero_grads();
    const parallel::Gradients gradients =
        bench.assembly().engine().run(replica, {&batch, 1}, mix(5), parallel::EngineEvents{});
    made.loss = gradients.loss.sum / static_cast<double>(gradients.loss.count);
  }
  made.grads = replica.params.grads.cpu();
  return made;
}

/// How far gradients are from those that the CPU makes in fp32.
int compare(Options options, comm::Metered& group) {
  Options reference = options;
  reference.device = "cpu";
  reference.precision = "fp32";
  const Passes right = passes(reference, group), made = passes(options, group);
  const nlohmann::ordered_json result{
      {"model", options.model},
      {"precision", options.precision},
      {"settings", options.settings},
      {"dropout", options.dropout},
      {"padded", options.padded},
      {"loss", made.loss},
      {"loss_on_cpu", right.loss},
      {"gradient_off_by", ((made.grads - right.grads).norm() / right.grads.norm()).item<double>()}};
  fmt::print("{}\n", result.dump());
  return 0;
}

int work(const Options& options) {
  constexpr std::chrono::seconds kPatience(120);
  run::set_up_compute(options.compare ? 8 : 1);
  const run::World world = run::find_world({}, run::environment_of_process());
  comm::Membership membership = run::join(world, "auto", kPatience);
  comm::use_gpus(membership, run::parse_device(options.device, world.local_rank), "auto", kPatience);
  comm::Metered group(std::move(membership.group));
  const int code = options.compare ? compare(options, group) : measure(options, group);
  membership.leave();
  return code;
}

int run_bench(int argc, char** argv) {
  Options options;
  CLI::App app{"One training step on a GPU, in milliseconds"};
  app.add_option("--mode", options.mode)->capture_default_str();
  app.add_option("--model", options.model, "a preset of BERT (two classes), GPT or a residual network")
      ->capture_default_str();
  app.add_option("--device", options.device)->capture_default_str();
  app.add_option("--precision", options.precision)->capture_default_str();
  app.add_option("--workers", options.workers)->capture_default_str();
  app.add_option("--batch", options.batch)->capture_default_str();
  app.add_option("--seq", options.length)->capture_default_str();
  app.add_option("--steps", options.steps)->capture_default_str();
  app.add_option("--warmup", options.warmup)->capture_default_str();
  app.add_option("--dropout", options.dropout)->capture_default_str();
  app.add_option("--attention-dropout", options.attention_dropout);
  app.add_option("--clip", options.clip)->capture_default_str();
  app.add_option("--padded", options.padded, "the most of a text that is padding")->capture_default_str();
  app.add_flag("--compare", options.compare, "gradients with those of the CPU, in place of times");
  app.add_flag("--no-mps", options.no_mps, "without NVIDIA's Multi-Process Service");
  app.add_option("--set", options.settings, "a setting of the run, like compute.graphs=false")
      ->take_all()
      ->allow_extra_args(false);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (run::find_world({}, run::environment_of_process()).is_worker() || options.workers == 1)
    return work(options);
  run::LaunchOptions launch;
  launch.workers = options.workers;
  for (int i = 0; i < argc; ++i) launch.argv.emplace_back(argv[i]);
  std::unique_ptr<run::GpuService> service;
  if (!options.no_mps && run::share_a_gpu(options.device, options.workers))
    service = run::GpuService::start();
  if (service) launch.environment = service->environment();
  const run::LaunchResult result = run::launch(launch);
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
