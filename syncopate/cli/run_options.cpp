#include "syncopate/cli/run_options.h"

#include <algorithm>
#include <map>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/plan/placement_file.h"
#include "syncopate/run/placement.h"
#include "syncopate/spec/effect.h"
#include "syncopate/spec/recorded.h"

namespace syncopate::cli {
namespace {

/// The part of the help that a setting's flag stands in.
std::string group_of(const std::string& field) {
  static const std::map<std::string, std::string> kGroups{{"task", "Task"},
                                                          {"model", "Model"},
                                                          {"optim", "Training"},
                                                          {"train", "Training"},
                                                          {"strategy", "Synchronising"},
                                                          {"codec", "Synchronising"},
                                                          {"comm", "Workers"},
                                                          {"pipeline", "Pipeline"},
                                                          {"activation", "Pipeline"},
                                                          {"network", "Workers"},
                                                          {"compute", "Workers"}};
  return kGroups.at(field.substr(0, field.find('.')));
}

void add_flag(Program& program, CLI::App& app, const Fields::Field& field, SpecArguments& arguments) {
  const std::string flag = "--" + field.flag;
  if (field.type.empty()) {
    const auto set = [&arguments, name = field.name] { arguments.given.emplace_back(name, "true"); };
    app.add_flag_callback(flag, set, field.help)->group(group_of(field.name));
    return;
  }
  const auto take = [&arguments, name = field.name](const std::string& text) {
    arguments.given.emplace_back(name, text);
  };
  CLI::Option* option = app.add_option_function<std::string>(flag, take, field.help);
  option->take_last()->type_name(field.type)->group(group_of(field.name));
  option->default_str(Fields::text_of(field));
  program.choices[option] = field.choices;
}

std::string read_token(const std::string& file) {
  const std::string text = read_file(file, "token");
  const std::string token(trim(text));
  if (token.empty()) throw ConfigError("the token in {} is empty; write a secret into it", file);
  return token;
}

}  // namespace

void add_spec_options(Program& program, CLI::App& app, SpecArguments& arguments) {
  spec::RunSpec defaults;
  const Fields fields = defaults.fields();
  for (const Fields::Field& field : fields.all()) {
    program.settings[&app].push_back({.name = field.name,
                                      .type = field.type.empty() ? std::string("true|false") : field.type,
                                      .help = field.help,
                                      .preset = Fields::text_of(field),
                                      .choices = field.choices});
  }
  for (const char* group : {"Task", "Model", "Training", "Synchronising", "Pipeline", "Workers"}) {
    for (const Fields::Field& field : fields.all()) {
      if (!field.flag.empty() && group_of(field.name) == group) add_flag(program, app, field, arguments);
    }
  }
  app.add_flag("--no-shuffle", arguments.no_shuffle, "use the order of the file in every epoch")
      ->group("Task");
  app.add_option("--set", arguments.assignments, "any setting by its name; can be repeated")
      ->group("Training")
      ->type_name("NAME=VALUE");
  app.add_option(
         "--config", arguments.config,
         "begin with the settings of a spec.json, or of the run in a folder; what is given beside it holds")
      ->group("Training")
      ->type_name("FILE");
}

void add_placement_option(CLI::App& app, SpecArguments& arguments) {
  app.add_option("--placement", arguments.placement,
                 "stages, replicas, micro-batches, bits and network as `syncopate plan --out` placed them")
      ->group("Pipeline")
      ->type_name("FILE");
}

spec::RunSpec make_spec(const SpecArguments& arguments, std::vector<std::string>& given) {
  spec::RunSpec spec;
  if (!arguments.config.empty()) spec = spec::read_spec(arguments.config);
  const Fields fields = spec.fields();
  for (const auto& [name, text] : arguments.given) given.push_back(fields.set(name, text).name);
  if (arguments.no_shuffle) spec.task.shuffle = false;
  for (const std::string& assignment : arguments.assignments)
    given.push_back(fields.set_assignment(assignment).name);
  if (!arguments.placement.empty())
    plan::take_placement(plan::read_placement(arguments.placement), spec, given);
  spec::prefer_given(spec, given);
  spec.complete();
  if (!arguments.config.empty()) spec::drop_unheeded(spec, given);
  return spec;
}

void add_world_options(CLI::App& app, WorldArguments& arguments) {
  const auto option = [&](const char* type, const char* name, auto& target, const char* help) {
    app.add_option(name, target, help)->group("Workers")->type_name(type);
  };
  option("INT", "--rank", arguments.rank, "rank of this process, when workers are started by hand");
  option("INT", "--world-size", arguments.world_size, "number of processes, when started by hand");
  option("HOST:PORT", "--master", arguments.master, "rendezvous address of rank 0, when started by hand");
  option("FILE", "--token-file", arguments.token_file,
         "holds the secret that workers on several machines share (default: SYNCOPATE_TOKEN)");
  app.add_flag("--insecure", arguments.insecure, "let workers on other machines join without a secret")
      ->group("Workers");
}

run::World find_world(const SpecArguments& settings, const WorldArguments& arguments,
                      const std::vector<std::string>& given, spec::RunSpec& spec) {
  run::WorldFlags flags;
  const bool recorded = !settings.config.empty() && spec.comm.workers > 1;
  if (recorded || !settings.placement.empty() || std::count(given.begin(), given.end(), "comm.workers") > 0)
    flags.workers = static_cast<int>(spec.comm.workers);
  flags.rank = arguments.rank;
  flags.world_size = arguments.world_size;
  flags.master = arguments.master;
  flags.servers = static_cast<int>(spec.servers());
  if (!arguments.token_file.empty()) flags.token = read_token(arguments.token_file);
  flags.insecure = arguments.insecure;
  const run::World world = run::find_world(flags, run::environment_of_process());
  if (!world.is_worker()) return world;
  const bool placed =
      !settings.placement.empty() && std::count(given.begin(), given.end(), "network.name") == 0;
  if (placed && world.launcher != "syncopate") {
    spec.network = {};  // workers that others started sit where the placement was made for
  }
  if (!spec.network.name.empty() && world.launcher != "syncopate") {
    throw ConfigError(
        "--network starts the workers itself, on hosts of its own, but {} has started them; leave it out, or "
        "start "
        "the program without {}",
        world.launcher == "manual" ? "--rank" : world.launcher,
        world.launcher == "manual" ? "--rank" : world.launcher);
  }
  spec.comm.workers = world.size - spec.servers();
  if (spec.comm.workers < 1 && spec.servers() > 0) {
    throw ConfigError(
        "the last {1} of {0} process{2} would be servers, which leaves no workers; start more processes, or "
        "set strategy.servers",
        world.size, spec.servers(), world.size == 1 ? "" : "es");
  }
  return world;
}

void sit_on_network(const spec::RunSpec& spec, run::LaunchOptions& options) {
  if (spec.network.name.empty()) return;
  options.lab = emulation::inside();
  options.seats = run::place(spec, options.workers).seats;
}

std::string command_of(char** argv) {
  std::string line;
  for (char** word = argv; *word != nullptr; ++word) line += (line.empty() ? "" : " ") + shell_word(*word);
  return line;
}

}  // namespace syncopate::cli
