#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/progress.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/interrupt.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/device.h"
#include "syncopate/run/launch.h"
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
  std::vector<std::pair<std::string, std::string>> given;  ///< field, text
  std::vector<std::string> assignments;                    ///< --set
  bool no_shuffle = false, resume = false, extend = false, insecure = false, json = false;
  std::string out, master, token_file, config;
  std::string command;  ///< as it was given
  std::optional<int> rank, world_size;
};

/// The settings asked for; `given` gets the names of those that somebody gave.
spec::RunSpec make_spec(const TrainArguments& arguments, std::vector<std::string>& given) {
  spec::RunSpec spec;
  if (!arguments.config.empty()) spec = spec::read_spec(arguments.config);
  const Fields fields = spec.fields();
  for (const auto& [name, text] : arguments.given) given.push_back(fields.set(name, text).name);
  if (arguments.no_shuffle) spec.task.shuffle = false;
  for (const std::string& assignment : arguments.assignments)
    given.push_back(fields.set_assignment(assignment).name);
  spec::prefer_given(spec, given);
  spec.complete();
  if (!arguments.config.empty()) spec::drop_unheeded(spec, given);
  return spec;
}

std::string read_token(const std::string& file) {
  const std::string text = read_file(file, "token");
  const std::string token(trim(text));
  if (token.empty()) throw ConfigError("the token in {} is empty; write a secret into it", file);
  return token;
}

/// The words of a command as a shell would take them.
std::string command_of(char** argv) {
  std::string line;
  for (char** word = argv; *word != nullptr; ++word) line += (line.empty() ? "" : " ") + shell_word(*word);
  return line;
}

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
  for (char** word = argv; *word != nullptr; ++word) options.argv.emplace_back(*word);
  options.environment = {{kFolderVariable, folder.path.string()}};
  options.log_folder = folder.path;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(1e3 * spec.comm.timeout));
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
  if (!result.sentence.empty() && result.exit_code != static_cast<int>(ExitCode::kInterrupted)) {
    tell("syncopate: {}", result.sentence);
  }
  return result.exit_code;
}

int train(const TrainArguments& arguments, char** argv) {
  std::vector<std::string> given;
  spec::RunSpec spec = make_spec(arguments, given);
  run::WorldFlags flags;
  const bool recorded = !arguments.config.empty() && spec.comm.workers > 1;
  if (recorded || std::count(given.begin(), given.end(), "comm.workers") > 0)
    flags.workers = static_cast<int>(spec.comm.workers);
  flags.rank = arguments.rank;
  flags.world_size = arguments.world_size;
  flags.master = arguments.master;
  flags.servers = static_cast<int>(spec.servers());
  if (!arguments.token_file.empty()) flags.token = read_token(arguments.token_file);
  flags.insecure = arguments.insecure;
  if (arguments.extend && !arguments.resume)
    throw ConfigError("--extend goes with --resume: it lets a run go on with other settings");
  const run::World world = run::find_world(flags, run::environment_of_process());
  if (world.is_worker()) {
    spec.comm.workers = world.size - spec.servers();
    if (spec.comm.workers < 1 && spec.servers() > 0) {
      throw ConfigError(
          "the last {1} of {0} process{2} would be servers, which leaves no workers; start more processes, "
          "or set "
          "strategy.servers",
          world.size, spec.servers(), world.size == 1 ? "" : "es");
    }
  }
  if (!world.is_worker()) run::require_place_for(spec.comm.workers + spec.servers());
  spec.validate();
  spec::require_effect(spec, given);
  run::parse_device(spec.compute.device);  // a run that asks for a GPU that is not there starts no worker
  if (world.is_worker() || spec.comm.workers + spec.servers() == 1 ||
      spec::strategy_info(spec.strategy.name).in_one_process) {
    return work(spec, world, arguments);
  }
  return launch_workers(spec, arguments, argv);
}

/// The part of the help that a setting's flag stands in.
std::string group_of(const std::string& field) {
  static const std::map<std::string, std::string> kGroups{{"task", "Task"},
                                                          {"model", "Model"},
                                                          {"optim", "Training"},
                                                          {"train", "Training"},
                                                          {"strategy", "Synchronising"},
                                                          {"codec", "Synchronising"},
                                                          {"comm", "Workers"},
                                                          {"network", "Network"},
                                                          {"compute", "Workers"}};
  return kGroups.at(field.substr(0, field.find('.')));
}

void add_flag(Program& program, CLI::App& app, const Fields::Field& field,
              const std::shared_ptr<TrainArguments>& arguments) {
  const std::string flag = "--" + field.flag;
  if (field.type.empty()) {
    const auto set = [arguments, name = field.name] { arguments->given.emplace_back(name, "true"); };
    app.add_flag_callback(flag, set, field.help)->group(group_of(field.name));
    return;
  }
  const auto take = [arguments, name = field.name](const std::string& text) {
    arguments->given.emplace_back(name, text);
  };
  CLI::Option* option = app.add_option_function<std::string>(flag, take, field.help);
  option->take_last()->type_name(field.type)->group(group_of(field.name));
  option->default_str(Fields::text_of(field));
  program.choices[option] = field.choices;
}

/// A flag for each setting that has one.
void add_settings(Program& program, CLI::App& app, const std::shared_ptr<TrainArguments>& arguments) {
  spec::RunSpec defaults;
  const Fields fields = defaults.fields();
  for (const Fields::Field& field : fields.all()) {
    program.settings[&app].push_back({.name = field.name,
                                      .type = field.type.empty() ? std::string("true|false") : field.type,
                                      .help = field.help,
                                      .preset = Fields::text_of(field),
                                      .choices = field.choices});
  }
  for (const char* group : {"Task", "Model", "Training", "Synchronising", "Workers"}) {
    for (const Fields::Field& field : fields.all()) {
      if (!field.flag.empty() && group_of(field.name) == group) add_flag(program, app, field, arguments);
    }
  }
}

}  // namespace

Command add_train(Program& program, char** argv) {
  CLI::App* app = program.app.add_subcommand("train", "Train a model, alone or with several workers");
  auto arguments = std::make_shared<TrainArguments>();
  add_settings(program, *app, arguments);
  const auto option = [&](const char* group, const char* type, const char* name, auto& target,
                          const char* help) {
    return app->add_option(name, target, help)->group(group)->type_name(type);
  };
  app->add_flag("--no-shuffle", arguments->no_shuffle, "use the order of the file in every epoch")
      ->group("Task");
  option("Training", "NAME=VALUE", "--set", arguments->assignments,
         "any setting by its name; can be repeated");
  option("Training", "FILE", "--config", arguments->config,
         "begin with the settings of a spec.json, or of the run in a folder; what is given beside it holds");
  option("Workers", "INT", "--rank", arguments->rank,
         "rank of this process, when workers are started by hand");
  option("Workers", "INT", "--world-size", arguments->world_size,
         "number of processes, when started by hand");
  option("Workers", "HOST:PORT", "--master", arguments->master,
         "rendezvous address of rank 0, when started by hand");
  option("Workers", "FILE", "--token-file", arguments->token_file,
         "holds the secret that workers on several machines share (default: SYNCOPATE_TOKEN)");
  app->add_flag("--insecure", arguments->insecure, "let workers on other machines join without a secret")
      ->group("Workers");
  option("Output", "FOLDER", "--out", arguments->out,
         "folder for the run (default: runs/<name made from the settings>)");
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
  program.notes[app] = {
      "A setting that the task, model, strategy, codec, optimizer or schedule chosen does not heed is "
      "refused."};
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
