#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "syncopate/cli/program.h"
#include "syncopate/run/launch.h"
#include "syncopate/run/world.h"
#include "syncopate/spec/run_spec.h"

// Flags that commands about a run have in common: its settings, and who this process is among its workers.
namespace syncopate::cli {

/// The settings of a run as a command line gives them.
struct SpecArguments {
  std::vector<std::pair<std::string, std::string>> given{};  ///< field, text
  std::vector<std::string> assignments{};                    ///< --set
  bool no_shuffle = false;
  std::string config{};
  std::string placement{};
};

/// A flag for each setting that has one, --set, --config and --no-shuffle. `arguments` must outlive `app`.
void add_spec_options(Program& program, CLI::App& app, SpecArguments& arguments);

/// --placement, for commands that make or play out one run.
void add_placement_option(CLI::App& app, SpecArguments& arguments);

/// The settings asked for; `given` gets the names of those that somebody gave. Throws ConfigError.
spec::RunSpec make_spec(const SpecArguments& arguments, std::vector<std::string>& given);

/// Who this process is, where no launcher says it.
struct WorldArguments {
  std::optional<int> rank{}, world_size{};
  std::string master{}, token_file{};
  bool insecure = false;
};

/// `arguments` must outlive `app`.
void add_world_options(CLI::App& app, WorldArguments& arguments);

/// Finds this process among the workers of a run and corrects the spec's number of workers where a launcher
/// started them. `given`: as make_spec gave it. Throws ConfigError.
run::World find_world(const SpecArguments& settings, const WorldArguments& arguments,
                      const std::vector<std::string>& given, spec::RunSpec& spec);

/// On an emulated network that this process is inside of: the workers' places.
void sit_on_network(const spec::RunSpec& spec, run::LaunchOptions& options);

/// The words of a command as a shell would take them.
std::string command_of(char** argv);

}  // namespace syncopate::cli
