#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
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
#include "syncopate/run/gpu_service.h"
#include "syncopate/run/launch.h"
#include "syncopate/run/placement.h"
#include "syncopate/run/records/trace_file.h"
#include "syncopate/run/replicas.h"
#include "syncopate/run/worker.h"
#include "syncopate/run/world.h"
#include "syncopate/spec/effect.h"
#include "syncopate/spec/folder.h"
#include "syncopate/spec/recorded.h"
#include "syncopate/spec/run_spec.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::cli {
namespace {

constexpr const char* kFolderVariable = "SYNCOPATE_RUN_FOLDER";

struct TrainArguments {
  SpecArguments settings;
  WorldArguments world;
  bool resume = false, extend = false, json = false;
  std::string out;
  std::string trace;
  int64_t trace_steps = 3;
  std::string command;  ///< as it was given
};

void say_note(const std::string& note) { tell("note: {}", note); }

void print_result(const std::string& json_text) {
  fmt::print("{}\n", nlohmann::ordered_json::parse(json_text).dump());
}

int work(const spec::RunSpec& spec, const run::World& world, const TrainArguments& arguments) {
  catch_interrupts();
  const char* const folder = ::getenv(kFolderVariable);
  const bool launched = world.launcher == "syncopate";
  const run::WorkerOptions options{.out = launched && folder != nullptr ? folder : arguments.out,
                                   .folder_is_ready = launched && folder != nullptr,
                                   .resume = arguments.resume,
                                   .extend = arguments.extend,
                                   .command = arguments.command,
                                   .trace = arguments.trace,
                                   .trace_steps = arguments.trace_steps,
                                   .progress = Progress::style_for_stderr(),
                                   .stop_requested = interrupted,
                                   .note = say_note,
                                   .give_up = [launched](const std::string& sentence) {
                                     if (!launched) tell("syncopate: {}", sentence);
                                     ::_exit(static_cast<int>(ExitCode::kComm));
                                   }};
  run::WorkerResult result;
  try {
    result = spec::strategy_info(spec.strategy.name).in_one_process ? run::run_replicas(spec, world, options)
                                                                    : run::run_worker(spec, world, options);
  } catch (const run::ReportedError& error) {
    if (!launched) throw;
    return static_cast<int>(error.code());  // the launcher reports it once
  }
  if (result.interrupted) return static_cast<int>(ExitCode::kInterrupted);
  if (result.record && !launched && arguments.json) {
    fmt::print("{}\n", record::to_json(*result.record).dump());
  }
  return 0;
}

/// Starts the workers of a run on this machine and waits for them.
int launch_workers(spec::RunSpec& spec, const TrainArguments& arguments, char** argv) {
  const spec::ClaimedFolder claimed = spec::claim_folder(spec, {.out = arguments.out,
                                                                .resume = arguments.resume,
                                                                .extend = arguments.extend,
                                                                .command = arguments.command,
                                                                .note = say_note});
  const record::RunFolder& folder = claimed.folder;
  if (!arguments.resume) spec::start_folder(folder, spec);
  const auto processes = static_cast<int>(spec.comm.workers + spec.servers());
  run::set_thread_environment(spec.compute.threads > 0 ? static_cast<int>(spec.compute.threads)
                                                       : run::default_threads(processes));
  run::LaunchOptions options;
  options.workers = processes;
  options.argv = run::words_of(argv);
  options.environment = {{kFolderVariable, folder.path.string()}};
  options.log_folder = folder.path;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(1e3 * spec.comm.timeout));
  options.note = [](const std::string& text) { tell("note: {}", text); };
  sit_on_network(spec, options);
  std::unique_ptr<run::GpuService> service;
  if (spec.compute.mps && run::share_a_gpu(spec.compute.device, static_cast<int>(spec.comm.workers)))
    service = run::GpuService::start();
  if (service) {
    const auto& more = service->environment();
    options.environment.insert(options.environment.end(), more.begin(), more.end());
  }
  const run::LaunchResult result = run::launch(options);
  if (result.exit_code == 0) {
    if (arguments.json) print_result(read_file(folder.result(), "result"));
    return 0;
  }
  // Remove the folder of a run that failed before its first step, unless the user is told to look into it.
  std::error_code ignored;
  const bool stepped = std::filesystem::file_size(folder.losses(0), ignored) > 0 && !ignored;
  const bool wanted = stepped || std::filesystem::exists(folder.checkpoint(), ignored) || result.names_log ||
                      result.exit_code == static_cast<int>(ExitCode::kInternal);
  if (claimed.fresh && !wanted) remove_tree(folder.path);
  return outcome(result);
}

int train(const TrainArguments& arguments, char** argv) {
  std::vector<std::string> given;
  spec::RunSpec spec = make_spec(arguments.settings, given);
  if (arguments.extend && !arguments.resume)
    throw ConfigError("--extend goes with --resume: it lets a run go on with other settings");
  const run::World world = find_world(arguments.settings, arguments.world, given, spec);
  if (!world.is_worker()) run::require_place_for(spec.comm.workers + spec.servers());
  spec.validate();
  spec::require_effect(spec, given);
  if (arguments.trace_steps < 1)
    throw ConfigError("--trace-steps must be at least 1, got {}", arguments.trace_steps);
  if (!arguments.trace.empty() && world.rank <= 0) run::require_trace_place(arguments.trace);
  const int64_t processes = spec.comm.workers + spec.servers();
  const bool launches =
      !world.is_worker() && processes > 1 && !spec::strategy_info(spec.strategy.name).in_one_process;
  if (launches) run::require_backend(spec.comm.backend, processes);
  if (!world.is_worker() && run::needs_lab(spec))
    return run::run_in_network(spec, static_cast<int>(processes), argv);
  run::parse_device(spec.compute.device);  // a run that asks for a GPU that is not there starts no worker
  return launches ? launch_workers(spec, arguments, argv) : work(spec, world, arguments);
}

}  // namespace

Command add_train(Program& program, char** argv) {
  CLI::App* app = program.app.add_subcommand("train", "Train a model, alone or with several workers");
  auto arguments = std::make_shared<TrainArguments>();
  add_spec_options(program, *app, arguments->settings);
  add_placement_option(*app, arguments->settings);
  add_world_options(*app, arguments->world);
  app->add_option("--out", arguments->out, "folder for the run (default: runs/<name made from the settings>)")
      ->group("Output")
      ->type_name("FOLDER");
  app->add_flag("--resume", arguments->resume,
                "resume the run in the folder from its checkpoint; with --out also on another number of "
                "workers, with "
                "the same global batches")
      ->group("Output");
  app->add_flag("--extend", arguments->extend,
                "with --resume: go on with other settings (more steps, another rate), as another run")
      ->group("Output");
  app->add_flag("--json", arguments->json, "print the result as the last line of standard output")
      ->group("Output");
  app->add_option("--trace", arguments->trace,
                  "write what every worker does in a few steps into this file, for ui.perfetto.dev")
      ->group("Output")
      ->type_name("FILE");
  app->add_option("--trace-steps", arguments->trace_steps, "how many steps --trace shows, from the third on")
      ->group("Output")
      ->type_name("INT")
      ->capture_default_str();
  program.notes[app] = {
      "A setting that the task, model, strategy, codec, optimizer or schedule chosen does not heed is "
      "refused.",
      "--placement trains what `syncopate plan --out` placed; settings that contradict it are refused "
      "(docs/plan.md)."};
  program.examples[app] = {
      "syncopate train --task supersense --strategy ddp --workers 2 --global-batch 64 --epochs 1",
      "syncopate train --task rte --data glue/RTE --model ./bert-base-uncased --batch-size 8 --epochs 3 --lr "
      "2e-5"};
  return [arguments, argv] {
    arguments->command = command_of(argv);
    return train(*arguments, argv);
  };
}

}  // namespace syncopate::cli
