#include "syncopate/run/probe/probe.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/progress.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/interrupt.h"
#include "syncopate/cli/outcome.h"
#include "syncopate/cli/run_options.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/device.h"
#include "syncopate/run/launch.h"
#include "syncopate/run/placement.h"
#include "syncopate/run/worker.h"

namespace syncopate::cli {
namespace {

struct ProbeArguments {
  SpecArguments settings;
  WorldArguments world;
  std::string out, profile, batches;
  bool no_links = false, no_step = false;
  double seconds = 30;
};

std::vector<int64_t> read_batches(const std::string& text) {
  std::vector<int64_t> batches;
  if (text.empty()) return batches;
  for (const std::string_view part : split(text, ',')) {
    const auto number = parse_integer(trim(part));
    if (!number || *number < 1)
      throw ConfigError("--batches takes numbers of examples such as 4,8,16, got \"{}\"", text);
    batches.push_back(*number);
  }
  return batches;
}

void print_links(const network::Topology& topology) {
  size_t width = 4;
  for (const network::Host& host : topology.hosts()) width = std::max(width, columns_of(host.name));
  fmt::print("{:<{}}  {:<{}}  {:>10}  {:>12}\n", "from", width, "to", width, "latency ms", "Gbit/s");
  for (int a = 0; a < topology.size(); ++a) {
    for (int b = 0; b < topology.size(); ++b) {
      const network::Host& host = topology.hosts()[static_cast<size_t>(a)];
      if (a == b && host.devices == 1) continue;
      const network::Link& link = topology.link(a, b);
      fmt::print("{:<{}}  {:<{}}  {:>10.4g}  {:>12.4g}\n", host.name, width,
                 topology.hosts()[static_cast<size_t>(b)].name, width, link.latency_ms, link.gbit);
    }
  }
}

void print_profile(const sim::Profile& profile) {
  fmt::print("{} {} · {} worker{} at once, {} thread{} each · {:.1f} million parameters\n", profile.task,
             profile.model, profile.workers, profile.workers == 1 ? "" : "s", profile.threads,
             profile.threads == 1 ? "" : "s", static_cast<double>(profile.elements()) / 1e6);
  fmt::print("{:>8}  {:>10}  {:>11}  {:>9}  {:>7}  {:>11}\n", "examples", "forward ms", "backward ms",
             "update ms", "data ms", "memory");
  for (const sim::BatchTime& time : profile.times) {
    fmt::print("{:>8}  {:>10.1f}  {:>11.1f}  {:>9.1f}  {:>7.1f}  {:>11}\n", time.batch, 1e3 * time.forward_s,
               1e3 * time.backward_s, 1e3 * time.update_s, 1e3 * time.data_s,
               bytes_for_people(static_cast<double>(time.peak_memory)));
  }
  fmt::print("an exchange takes {:.0f} µs, loopback carries {:.1f} GB/s\n", 1e6 * profile.local.operation_s,
             profile.local.loopback_gbyte);
}

int measure(const spec::RunSpec& spec, const run::World& world, const ProbeArguments& arguments) {
  catch_interrupts();
  const bool launched = world.launcher == "syncopate";
  run::ProbeResult result;
  try {
    result = run::run_probe(spec, world,
                            {.links = !arguments.no_links,
                             .step = !arguments.no_step,
                             .seconds = arguments.seconds,
                             .batches = read_batches(arguments.batches),
                             .progress = Progress::style_for_stderr(),
                             .stop_requested = interrupted,
                             .note = [](const std::string& note) { tell("note: {}", note); },
                             .give_up =
                                 [launched](const std::string& sentence) {
                                   if (!launched) tell("syncopate: {}", sentence);
                                   ::_exit(static_cast<int>(ExitCode::kComm));
                                 }});
  } catch (const run::ReportedError& error) {
    if (!launched) throw;
    return static_cast<int>(error.code());  // the launcher reports it once
  }
  if (interrupted()) return static_cast<int>(ExitCode::kInterrupted);
  if (world.rank != 0) return 0;
  if (!arguments.out.empty())
    write_file_atomically(arguments.out, network::to_toml(result.network->topology));
  if (!arguments.profile.empty()) sim::write_profile(arguments.profile, *result.profile);
  if (result.links) print_links(result.network->topology);
  if (result.profile) print_profile(*result.profile);
  for (const std::string& pair : result.network->unsteady)
    tell("note: the rate of {} had not settled; give more time with --seconds, or a quieter machine", pair);
  for (const std::string& file : {arguments.out, arguments.profile}) {
    if (!file.empty()) tell("written: {}", file);
  }
  return 0;
}

int probe(ProbeArguments& arguments, char** argv) {
  std::vector<std::string> given;
  spec::RunSpec spec = make_spec(arguments.settings, given);
  if (arguments.no_links && arguments.no_step)
    throw ConfigError("--no-links and --no-step together leave nothing to measure; leave one out");
  if (arguments.no_step && !arguments.profile.empty())
    throw ConfigError("--profile takes what --no-step leaves out; leave one of them out");
  if (arguments.no_links && !arguments.out.empty())
    throw ConfigError("--out takes the links, which --no-links leaves out; leave one of them out");
  if (!(arguments.seconds > 0)) throw ConfigError("--seconds must be above 0, got {}", arguments.seconds);
  read_batches(arguments.batches);
  // Nobody serves here: what a step costs a worker is asked.
  const int64_t servers = spec.servers();
  if (servers > 0) spec.strategy = {};
  const run::World world = find_world(arguments.settings, arguments.world, given, spec);
  if (!world.is_worker()) {
    run::require_place_for(spec.comm.workers);
    run::require_backend(spec.comm.backend, spec.comm.workers);
  }
  spec.validate();
  run::parse_device(spec.compute.device);
  if (!arguments.no_links && arguments.no_step && spec.comm.workers == 1)
    throw ConfigError("one worker has no links to measure; give --workers N, or start several");
  if (!world.is_worker() && run::needs_lab(spec))
    return run::run_in_network(spec, static_cast<int>(spec.comm.workers), argv);
  if (world.is_worker() || spec.comm.workers == 1) return measure(spec, world, arguments);
  run::set_thread_environment(spec.compute.threads > 0
                                  ? static_cast<int>(spec.compute.threads)
                                  : run::default_threads(static_cast<int>(spec.comm.workers)));
  run::LaunchOptions options;
  options.workers = static_cast<int>(spec.comm.workers);
  options.argv = run::words_of(argv);
  options.timeout = std::chrono::milliseconds(std::llround(1e3 * spec.comm.timeout));
  sit_on_network(spec, options);
  return outcome(run::launch(options));
}

}  // namespace

Command add_probe(Program& program, char** argv) {
  CLI::App* app = program.app.add_subcommand(
      "probe", "Measure the links between workers and the parts of a training step");
  auto arguments = std::make_shared<ProbeArguments>();
  const auto option = [&](const char* type, const char* name, auto& target, const char* help) {
    return app->add_option(name, target, help)->group("Probe")->type_name(type);
  };
  option("FILE", "--out", arguments->out, "write the measured network here, as a cluster file");
  option("FILE", "--profile", arguments->profile,
         "write what a step costs here, for simulate, advise and plan (JSON)");
  app->add_flag("--no-links", arguments->no_links, "leave the links out")->group("Probe");
  app->add_flag("--no-step", arguments->no_step, "leave the training step out")->group("Probe");
  option("SECONDS", "--seconds", arguments->seconds, "roughly how long the links may take")
      ->capture_default_str();
  option("A,B,...", "--batches", arguments->batches,
         "examples per worker of the steps (default: half of the batch, the batch, twice the batch)");
  add_spec_options(program, *app, arguments->settings);
  add_world_options(*app, arguments->world);
  program.notes[app] = {
      "Takes the settings of `train`: a step is measured with the task, model, batch and threads that a run "
      "would have, by all workers at the same time. Nothing is trained and no folder is made."};
  program.examples[app] = {
      "syncopate probe --workers 4 --no-step --out cluster.toml",
      "syncopate probe --workers 2 --task supersense --model bert-mini --global-batch 16 "
      "--profile step.json"};
  return [arguments, argv] { return probe(*arguments, argv); };
}

}  // namespace syncopate::cli
