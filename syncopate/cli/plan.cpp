#include "syncopate/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/probe_process.h"
#include "syncopate/sim/measured_for.h"

namespace syncopate::cli {
namespace {

// The published example, GPT-3 XL in 8 stages and 8 replicas (Yuan et al. 2022, section 4): of one of each.
constexpr double kPublishedGradientGb = 0.65, kPublishedActivationGb = 0.4712;
constexpr int kPublishedStages = 8, kPublishedReplicas = 8;
constexpr double kMostGb = 1e6;
constexpr int kMostLayers = 10'000;

struct PlanArguments {
  std::string network, stages = "auto", replicas = "auto", micro_batches = "auto", cost, bits;
  double scale = 1, compute_s = 0, memory_gib = 0, budget_s = 0;
  std::optional<double> gradient_gb, activation_gb;
  std::optional<int> layers;
  int64_t global_batch = 0, max_length = 0;
  uint64_t seed = 1;
  std::string profile, task, model, data;
  bool no_overlap = false, json = false;
  std::string out, svg;

  bool knows_model() const { return !profile.empty() || !model.empty() || !task.empty(); }
  bool gives_sizes() const { return gradient_gb || activation_gb; }
};

std::optional<int> count_of(const std::string& text, const char* flag) {
  if (text == "auto") return std::nullopt;
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > 1'000'000)
    throw ConfigError("{} takes a number from 1 or auto, got \"{}\"", flag, text);
  return static_cast<int>(*number);
}

/// What train would be told of the model.
spec::RunSpec spec_of(const PlanArguments& arguments) {
  spec::RunSpec spec;
  if (!arguments.task.empty()) spec.task.name = arguments.task;
  spec.task.data = arguments.data;
  spec.task.max_length = arguments.max_length;
  spec.model.name = arguments.model;
  spec.complete();
  return spec;
}

void require_between(double value, double most, const char* flag) {
  if (!(value >= 0 && value <= most))
    throw ConfigError("{} must be from 0 to {:g}, got {}", flag, most, value);
}

/// The most even product: 8 x 8 of 64.
std::pair<int, int> squarest(int devices) {
  int stages = static_cast<int>(std::sqrt(static_cast<double>(devices)) + 1e-9);
  while (devices % stages != 0) --stages;
  return {stages, devices / stages};
}

void set_shape(const PlanArguments& arguments, plan::Request& request) {
  const int devices = request.topology.devices();
  request.stages = count_of(arguments.stages, "--stages");
  request.replicas = count_of(arguments.replicas, "--replicas");
  request.micro_batches = count_of(arguments.micro_batches, "--micro-batches");
  if (request.published) {
    // Without compute nothing is gained by a second device, so the shape has to be given; all devices are
    // used.
    if (!request.stages && !request.replicas) {
      std::tie(request.stages, request.replicas) = squarest(devices);
    } else if (!request.stages || !request.replicas) {
      const int given = request.stages ? *request.stages : *request.replicas;
      if (devices % given != 0) {
        throw ConfigError("{} {} do not divide the {} devices of network {}; choose a divisor", given,
                          request.stages ? "stages" : "replicas", devices, request.topology.name());
      }
      (request.stages ? request.replicas : request.stages) = devices / given;
    }
    request.micro_batches = 1;
  }
  if (request.stages && request.replicas &&
      static_cast<int64_t>(*request.stages) * *request.replicas != devices) {
    throw ConfigError(
        "--stages {} x --replicas {} is {}, but network {} has {} devices; choose numbers with that product, "
        "or "
        "auto, which may leave devices unused",
        *request.stages, *request.replicas, static_cast<int64_t>(*request.stages) * *request.replicas,
        request.topology.name(), devices);
  }
  for (const auto& [given, flag] :
       {std::pair{request.stages, "--stages"}, {request.replicas, "--replicas"}}) {
    if (given && *given > devices)
      throw ConfigError("{} {} is more than the {} devices of network {}", flag, *given, devices,
                        request.topology.name());
  }
}

void set_job(const PlanArguments& arguments, plan::Request& request) {
  if (arguments.knows_model()) {
    const sim::Profile profile = arguments.profile.empty() ? measure_profile(spec_of(arguments), 1)
                                                           : sim::read_profile(arguments.profile);
    sim::require_measured_for(
        profile, {.task = arguments.task, .model = arguments.model, .max_length = arguments.max_length});
    say_cores(profile, 1, 0);
    request.job = plan::job_from_profile(profile, arguments.global_batch);
    return;
  }
  const bool shaped = request.stages && request.replicas;
  double gradient = kPublishedGradientGb, activation = kPublishedActivationGb;
  if (arguments.gives_sizes()) {
    gradient = *arguments.gradient_gb;
    activation = *arguments.activation_gb;
  } else {
    if (!shaped) {  // then they are the whole model's and batch's
      gradient *= kPublishedStages;
      activation *= kPublishedReplicas;
    }
    tell("note: sizes of the published example: --gradient-gb {} --activation-gb {}", gradient, activation);
  }
  const int depth = arguments.layers.value_or(shaped ? *request.stages : request.topology.devices());
  request.job = plan::job_from_figures(shaped ? gradient * *request.stages : gradient,
                                       shaped ? activation * *request.replicas : activation,
                                       arguments.compute_s, depth);
}

int bits_of(std::string_view word, const std::vector<int>& there, const char* what) {
  const auto number = parse_integer(trim(word));
  if (!number || std::find(there.begin(), there.end(), *number) == there.end())
    throw ConfigError("--bits {} takes one of {}, got \"{}\"", what, fmt::join(there, ", "), word);
  return static_cast<int>(*number);
}

void set_codings(const PlanArguments& arguments, plan::Request& request) {
  // Fewer bits than these cost quality in AC-SGD's experiments (Wang et al. 2022).
  int forward = 4, backward = 8, gradient = 8;
  const bool nothing_known = !arguments.knows_model() && arguments.compute_s == 0;
  if (request.published || nothing_known) forward = backward = gradient = 32;
  if (!arguments.bits.empty()) {
    const std::vector<std::string_view> words = split(arguments.bits, ',');
    if (words.size() != 1 && words.size() != 3)
      throw ConfigError("--bits takes one number or three (forward, backward, gradients), got \"{}\"",
                        arguments.bits);
    forward = bits_of(words.front(), {2, 3, 4, 6, 8, 16, 32}, "of activations");
    backward = bits_of(words[words.size() / 2], {2, 3, 4, 6, 8, 16, 32}, "of their gradients");
    gradient = bits_of(words.back(), {4, 8, 16, 32}, "of gradients");
  }
  request.codings = plan::codings(request.job.profile, forward, backward, gradient);
}

void check_figures(const PlanArguments& arguments) {
  constexpr double kMostSeconds = 1e9;
  require_between(arguments.gradient_gb.value_or(0), kMostGb, "--gradient-gb");
  require_between(arguments.activation_gb.value_or(0), kMostGb, "--activation-gb");
  require_between(arguments.compute_s, kMostSeconds, "--compute-s");
  require_between(arguments.memory_gib, kMostGb, "--memory-gib");
  require_between(arguments.budget_s, kMostSeconds, "--budget");
  if (arguments.layers && (*arguments.layers < 1 || *arguments.layers > kMostLayers))
    throw ConfigError("--layers must be from 1 to {}, got {}", kMostLayers, *arguments.layers);
  if (arguments.knows_model()) {
    if (arguments.gives_sizes() || arguments.compute_s > 0 || arguments.layers)
      throw ConfigError(
          "--gradient-gb, --activation-gb, --compute-s and --layers stand for a model: leave them or "
          "--model, "
          "--task and --profile out");
    return;
  }
  if (arguments.gradient_gb.has_value() != arguments.activation_gb.has_value())
    throw ConfigError("{} is missing: a gradient's and activations' sizes go together; 0 is one",
                      arguments.gradient_gb ? "--activation-gb" : "--gradient-gb");
}

plan::Request make_request(const PlanArguments& arguments) {
  if (arguments.network.empty())
    throw ConfigError("--network is missing: a cluster file, or one of {}",
                      fmt::format("{}", fmt::join(network::preset_names(), ", ")));
  check_figures(arguments);
  if (arguments.knows_model() && arguments.global_batch < 1)
    throw ConfigError(
        "--global-batch is missing: how many examples an iteration takes, all replicas together");
  if (!arguments.cost.empty() && arguments.cost != "published" && arguments.cost != "full")
    throw ConfigError("--cost takes published or full, got \"{}\"", arguments.cost);

  plan::Request request;
  request.topology = network::load(arguments.network).scaled(arguments.scale);
  request.cluster = arguments.network;
  request.scale = arguments.scale;
  request.published = arguments.cost == "published" ||
                      (arguments.cost.empty() && !arguments.knows_model() && arguments.compute_s == 0);
  if (request.published && (arguments.knows_model() || arguments.compute_s > 0 || !arguments.bits.empty()))
    throw ConfigError(
        "--cost published knows sizes alone: give --gradient-gb and --activation-gb, or take --cost full");
  set_shape(arguments, request);
  if (!request.published && !arguments.knows_model() && arguments.compute_s == 0) {
    if (!request.stages || !request.replicas)
      throw ConfigError(
          "without compute one device is always best: give --compute-s or --model, or --stages and "
          "--replicas");
    if (!request.micro_batches) request.micro_batches = 1;
  }
  set_job(arguments, request);
  set_codings(arguments, request);
  if (request.stages && *request.stages > request.job.depth())
    plan::split_layers(request.job, *request.stages);
  request.overlap = !arguments.no_overlap;
  request.memory_gib = arguments.memory_gib;
  request.effort = {.seed = arguments.seed, .budget_s = arguments.budget_s};
  return request;
}

int make_and_show(const PlanArguments& arguments) {
  const plan::Plan plan = plan::make_plan(make_request(arguments));
  const std::string json = plan::to_json(plan).dump();
  if (!arguments.out.empty()) write_file_atomically(arguments.out, json + "\n");
  if (!arguments.svg.empty()) write_file_atomically(arguments.svg, plan::to_svg(plan));
  fmt::print("{}{}", arguments.json ? json : plan::to_text(plan), arguments.json ? "\n" : "");
  std::fflush(stdout);
  for (const std::string& file : {arguments.out, arguments.svg}) {
    if (!file.empty()) tell("written: {}", file);
  }
  return 0;
}

}  // namespace

Command add_plan(Program& program) {
  CLI::App* app = program.app.add_subcommand(
      "plan", "Place the stages and replicas of a model on a network, before paying for it");
  auto arguments = std::make_shared<PlanArguments>();
  const auto option = [&](const char* group, const char* type, const char* name, auto& target,
                          const std::string& help) {
    return app->add_option(name, target, help)->group(group)->type_name(type);
  };
  program.choices[option("Network", "FILE|PRESET", "--network", arguments->network,
                         "a cluster file or a preset")] = network::preset_names();
  option("Network", "X", "--scale", arguments->scale, "divides all bandwidths")->default_str("1");
  option("Network", "GIB", "--memory-gib", arguments->memory_gib,
         "memory of devices whose cluster file does not say (default: not known)");
  option("Shape", "P", "--stages", arguments->stages, "stages of the pipeline, or auto")->default_str("auto");
  option("Shape", "D", "--replicas", arguments->replicas, "replicas of each stage, or auto")
      ->default_str("auto");
  option("Shape", "M", "--micro-batches", arguments->micro_batches,
         "parts that a replica's batch passes through the pipeline in, or auto")
      ->default_str("auto");
  option("Shape", "BITS", "--bits", arguments->bits,
         "fewest bits that numbers may travel with: one for all, or forward,backward,gradients (default: "
         "4,8,8 with "
         "compute, else 32)");
  app->add_flag("--no-overlap", arguments->no_overlap, "nothing is sent while devices compute")
      ->group("Shape");
  program.choices[option("Cost", "MODEL", "--cost", arguments->cost,
                         "which cost (default: full where compute is known, else published)")] = {"published",
                                                                                                  "full"};
  option("Cost", "GB", "--gradient-gb", arguments->gradient_gb,
         "gradient of one stage; with auto, of the whole model");
  option("Cost", "GB", "--activation-gb", arguments->activation_gb,
         "activations that one replica sends over one cut; with auto, those of all replicas");
  option("Cost", "S", "--compute-s", arguments->compute_s,
         "forward and backward of the whole batch on one device of speed 1");
  option("Cost", "INT", "--layers", arguments->layers,
         "layers that a pipeline may be cut between, where sizes stand for a model (default: as many as are "
         "needed)");
  option("Model", "NAME", "--task", arguments->task,
         "what is learned, as in train: measured on this machine");
  option("Model", "NAME", "--model", arguments->model, "the model, as in train: measured on this machine");
  option("Model", "PATH", "--data", arguments->data, "the task's data, as in train");
  option("Model", "INT", "--max-length", arguments->max_length, "tokens of an example, as in train");
  option("Model", "FILE", "--profile", arguments->profile, "what `probe --profile` measured, instead");
  option("Model", "INT", "--global-batch", arguments->global_batch,
         "examples of an iteration, all replicas together");
  option("Search", "SECONDS", "--budget", arguments->budget_s,
         "search for so long; the answer then depends on the machine's speed (default: a fixed number of "
         "moves)");
  option("Search", "INT", "--seed", arguments->seed, "of the search")->default_str("1");
  app->add_flag("--json", arguments->json, "print the placement as JSON")->group("Output");
  option("Output", "FILE", "--out", arguments->out,
         "write the placement (NAME.placement.json: reports show it)");
  option("Output", "FILE", "--svg", arguments->svg, "draw the map of hosts, stages and links");
  program.notes[app] = {
      "--cost published is that of DT-FM (Yuan et al., NeurIPS 2022); full also knows compute, memory, "
      "overlap, "
      "micro-batches and codecs, and is the same without them where links are alike in both directions "
      "(published takes the mean of both rates, full each as it is). Both are described in docs/plan.md.",
      "Speed only: what fewer bits cost in quality is for `compare` to say."};
  program.examples[app] = {
      "syncopate plan --network worldwide --gradient-gb 0.65 --activation-gb 0.4712 --stages 8 --replicas 8",
      "syncopate plan --network cluster.toml --task rte --model bert-base-uncased --global-batch 64 --svg "
      "map.svg"};
  return [arguments] { return make_and_show(*arguments); };
}

}  // namespace syncopate::cli
