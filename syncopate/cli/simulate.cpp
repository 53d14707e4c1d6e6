#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/process.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/base/version.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/probe_process.h"
#include "syncopate/cli/run_options.h"
#include "syncopate/sim/record_run.h"
#include "syncopate/sim/steps.h"
#include "syncopate/spec/effect.h"
#include "syncopate/spec/folder.h"

namespace syncopate::cli {
namespace {

struct SimulateArguments {
  SpecArguments settings;
  std::string profile, out, command;
  bool one_machine = false, json = false;
};

/// How many steps the run would make: as asked for, or an epoch's where the profile knows it, or two periods.
int64_t steps_of(const spec::RunSpec& spec, const sim::Profile& profile) {
  constexpr int64_t kMost = 100'000;
  const auto updates = spec.runs_free() ? spec.comm.workers : int64_t{1};
  int64_t steps = spec.train.steps;
  if (steps == 0 && profile.training_examples > 0) {
    const double epoch = std::ceil(profile.training_examples / static_cast<double>(spec.examples_per_step()));
    steps = std::max<int64_t>(1, spec.train.epochs) * static_cast<int64_t>(epoch);
  }
  if (steps == 0) steps = 2 * sim::period_of(spec);
  if (steps <= kMost / updates) return steps * updates;
  const int64_t written = kMost / updates * updates;
  tell("note: the run would make {} {}s; the first {} are written, the rest would repeat them",
       steps * updates, spec.runs_free() ? "update" : "step", written);
  return written;
}

void write_run(const spec::RunSpec& asked, const SimulateArguments& arguments, sim::SimulatedRun& run) {
  spec::RunSpec spec = asked;
  const spec::ClaimedFolder claimed =
      spec::claim_folder(spec, {.out = arguments.out, .command = arguments.command});
  const record::RunFolder& folder = claimed.folder;
  spec::start_folder(folder, spec);
  run.result.run_dir = folder.path.string();
  run.result.provenance = {.version = program_version(),
                           .commit = program_commit(),
                           .date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
                           .host = host_name(),
                           .command = arguments.command,
                           .seed = spec.train.seed,
                           .lr = spec.optim.lr};
  std::string lines;
  for (const record::StepRecord& step : run.steps) lines += record::to_json(step).dump() + "\n";
  const nlohmann::ordered_json environment{{"simulated", true},
                                           {"workers", spec.comm.workers},
                                           {"provenance", record::to_json(run.result.provenance)}};
  write_file_atomically(folder.environment(), environment.dump(2) + "\n");
  write_file_atomically(folder.steps(), lines);
  write_file_atomically(folder.evals(), "");
  write_file_atomically(folder.result(), record::readable(record::to_json(run.result)));
  write_file_atomically(folder.done(), "");
}

void print_summary(const record::RunRecord& result, const sim::Scene& scene, const sim::Prediction& step) {
  fmt::print("simulated: {} with {} worker{} on {} host{} of {}\n",
             result.codec == "none" ? result.strategy : result.strategy + ", " + result.codec, result.workers,
             result.workers == 1 ? "" : "s", result.network->hosts.size(),
             result.network->hosts.size() == 1 ? "" : "s", scene.topology.name());
  fmt::print(
      "time: {:.1f} ms per iteration (compute {:.1f}, exchange {:.1f}, hidden {:.1f}) · {:.0f} examples/s\n",
      step.ms, step.compute_ms, step.exchange_ms, step.hidden_ms, step.examples_per_s);
  if (result.workers > 1)
    fmt::print("sent: {} per step by each worker\n", bytes_for_people(step.bytes_per_step));
  if (step.memory > 0) fmt::print("memory: {} of the fullest worker\n", bytes_for_people(step.memory));
  const auto busiest = std::max_element(step.links.begin(), step.links.end(),
                                        [](const auto& a, const auto& b) { return a.busy < b.busy; });
  if (busiest != step.links.end()) {
    const auto name = [&](int host) { return scene.topology.hosts()[static_cast<size_t>(host)].name; };
    fmt::print("busiest link: {} to {}, {:.0f} % of the time, {} a step\n", name(busiest->from),
               name(busiest->to), 100 * busiest->busy, bytes_for_people(busiest->bytes));
  }
}

int simulate(SimulateArguments& arguments) {
  std::vector<std::string> given;
  spec::RunSpec spec = make_spec(arguments.settings, given);
  if (spec.network.name.empty())
    throw ConfigError("simulate needs --network: a cluster file or a preset ({})",
                      fmt::join(network::preset_names(), ", "));
  sim::Scene scene;
  if (!arguments.profile.empty()) {
    scene.profile = sim::read_profile(arguments.profile);
    use_profile(scene.profile, spec, given);
  }
  spec.validate();
  spec::require_effect(spec, given);
  scene.topology = network::load(spec.network.name).scaled(spec.network.scale);
  const auto ranks = static_cast<int>(spec.comm.workers + spec.servers());
  scene.seats = network::seats(scene.topology, spec.network.hosts, ranks);
  scene.one_machine = arguments.one_machine;
  const int64_t at_once = arguments.one_machine ? spec.comm.workers : 1;
  if (arguments.profile.empty()) scene.profile = measure_profile(spec, at_once);
  say_cores(scene.profile, at_once, spec.compute.threads);
  const sim::Prediction step = sim::predict(spec, scene);
  sim::SimulatedRun run = sim::simulated_run(spec, scene, step, steps_of(spec, scene.profile));
  write_run(spec, arguments, run);
  if (arguments.json) {
    fmt::print("{}\n", record::to_json(run.result).dump());
  } else {
    print_summary(run.result, scene, step);
    fmt::print("written: {}\n", run.result.run_dir);
  }
  return 0;
}

}  // namespace

Command add_simulate(Program& program, char** argv) {
  CLI::App* app = program.app.add_subcommand(
      "simulate", "Play a training run out on a network without training: its time, traffic and links");
  auto arguments = std::make_shared<SimulateArguments>();
  app->add_option("--profile", arguments->profile,
                  "what a step costs, from `syncopate probe --profile` (default: measured now)")
      ->group("Simulation")
      ->type_name("FILE");
  app->add_flag(
         "--one-machine", arguments->one_machine,
         "all workers compute on this machine, as in the lab; else each on its own, times its host's speed")
      ->group("Simulation");
  app->add_option("--out", arguments->out, "folder for the run (default: runs/<name made from the settings>)")
      ->group("Simulation")
      ->type_name("FOLDER");
  app->add_flag("--json", arguments->json, "print the result as the last line of standard output")
      ->group("Simulation");
  add_spec_options(program, *app, arguments->settings);
  add_placement_option(*app, arguments->settings);
  program.notes[app] = {
      "Takes the settings of `train`. The folder that it writes is read by `syncopate report`, which says "
      "that "
      "the run is simulated; it has no losses and no model."};
  program.examples[app] = {
      "syncopate simulate --network worldwide --strategy diloco --workers 64 --profile step.json --out "
      "sim/diloco"};
  return [arguments, argv] {
    arguments->command = command_of(argv);
    return simulate(*arguments);
  };
}

}  // namespace syncopate::cli
