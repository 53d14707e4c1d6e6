#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/cli/commands.h"
#include "syncopate/network/import.h"

namespace syncopate::cli {
namespace {

struct NetworkArguments {
  std::string action;
  std::vector<std::string> names;
  std::string regions, inside, hosts, out, name;
  int hosts_per_region = 1;
  double scale = 1;
};

std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> all;
  if (trim(text).empty()) return all;
  for (const std::string_view part : split(text, ',')) all.emplace_back(trim(part));
  return all;
}

network::Link inside_from(const std::string& text) {
  const auto parts = split(text, ',');
  const auto latency = parts.size() == 2 ? parse_number(trim(parts[0])) : std::nullopt;
  const auto gbit = parts.size() == 2 ? parse_number(trim(parts[1])) : std::nullopt;
  if (!latency || !gbit)
    throw ConfigError("--inside should be LATENCY_MS,GBIT, such as 0.5,10, got \"{}\"", text);
  return {.latency_ms = *latency, .gbit = *gbit};
}

std::string link_for_people(const network::Link& link) {
  return fmt::format("{:.3g}/{:.3g}", link.latency_ms, link.gbit);
}

/// What lies between the regions, by the first hosts of each.
std::string table_of(const network::Topology& topology) {
  const std::vector<std::string> regions = topology.regions();
  std::vector<std::vector<int>> members(regions.size());
  for (int host = 0; host < topology.size(); ++host) {
    const auto& region = topology.hosts()[static_cast<size_t>(host)].region;
    members[static_cast<size_t>(std::find(regions.begin(), regions.end(), region) - regions.begin())]
        .push_back(host);
  }
  std::string text =
      fmt::format("{}: {} host{}, {} device{}, {} region{}; one-way latency in ms / Gbit/s\n",
                  topology.name(), topology.size(), topology.size() == 1 ? "" : "s", topology.devices(),
                  topology.devices() == 1 ? "" : "s", regions.size(), regions.size() == 1 ? "" : "s");
  constexpr size_t kMostColumns = 12;
  if (regions.size() > kMostColumns) return text + "(too many regions for a table; --out FILE writes all)\n";
  size_t widest = 6;
  for (const std::string& region : regions) widest = std::max(widest, region.size());
  text += fmt::format("{:<{}}  hosts", "", widest);
  for (const std::string& region : regions) text += fmt::format("  {:>10}", region.substr(0, 10));
  text += "\n";
  for (size_t i = 0; i < regions.size(); ++i) {
    text += fmt::format("{:<{}}  {:>5}", regions[i], widest, members[i].size());
    for (size_t j = 0; j < regions.size(); ++j) {
      const bool alone = i == j && members[i].size() == 1;
      const int to = i == j && !alone ? members[j][1] : members[j][0];
      text += fmt::format("  {:>10}", alone ? "-" : link_for_people(topology.link(members[i][0], to)));
    }
    text += "\n";
  }
  return text;
}

network::Topology chosen(const NetworkArguments& arguments) {
  if (arguments.action == "import") {
    network::ImportOptions options;
    for (const std::string& name : arguments.names) options.files.emplace_back(name);
    options.regions = list_of(arguments.regions);
    options.hosts_per_region = arguments.hosts_per_region;
    if (!arguments.inside.empty()) options.inside = inside_from(arguments.inside);
    if (!arguments.name.empty()) options.name = arguments.name;
    return network::import_csv(options);
  }
  if (arguments.names.size() != 1) throw ConfigError("network show needs one cluster file or preset");
  return network::load(arguments.names.front());
}

/// A flag that the action does not heed.
void require_effect(const NetworkArguments& arguments) {
  const std::string& action = arguments.action;
  const auto refuse = [&](bool given, const char* flag) {
    if (given) throw ConfigError("{} has no effect on `network {}`; leave it out", flag, action);
  };
  if (action != "import") {
    refuse(!arguments.regions.empty(), "--regions");
    refuse(!arguments.inside.empty(), "--inside");
    refuse(!arguments.name.empty(), "--name");
    refuse(arguments.hosts_per_region != 1, "--hosts-per-region");
  }
  if (action == "list") {
    refuse(!arguments.names.empty(), "a name");
    refuse(!arguments.hosts.empty(), "--hosts");
    refuse(arguments.scale != 1, "--scale");
    refuse(!arguments.out.empty(), "--out");
  }
}

int run(const NetworkArguments& arguments) {
  static const std::vector<std::string> known{"list", "show", "import"};
  if (std::find(known.begin(), known.end(), arguments.action) == known.end())
    throw ConfigError("unknown action \"{}\"{}", arguments.action, suggestion(arguments.action, known));
  require_effect(arguments);
  if (arguments.action == "list") {
    for (const std::string& name : network::preset_names()) fmt::print("{}\n", table_of(network::load(name)));
    return 0;
  }
  network::Topology topology = chosen(arguments);
  if (!arguments.hosts.empty()) {
    std::vector<int> hosts;
    for (const std::string& host : list_of(arguments.hosts)) hosts.push_back(topology.find(host));
    topology = topology.only(hosts);
  }
  topology = topology.scaled(arguments.scale);
  fmt::print("{}", table_of(topology));
  if (!arguments.out.empty()) {
    write_file_atomically(arguments.out, network::to_toml(topology));
    tell("wrote {}", arguments.out);
  }
  return 0;
}

}  // namespace

Command add_network(Program& program) {
  CLI::App* app = program.app.add_subcommand(
      "network", "Show networks, and make cluster files from measurements that others have published");
  auto arguments = std::make_shared<NetworkArguments>();
  CLI::Option* action = app->add_option("action", arguments->action, "list (the presets), show or import")
                            ->required()
                            ->type_name("ACTION");
  program.choices[action] = {"list", "show", "import"};
  app->add_option("from", arguments->names, "show: a cluster file or preset; import: CSV files")
      ->type_name("NAME");
  app->add_option("--regions", arguments->regions, "import: these regions alone")
      ->group("Import")
      ->type_name("A,B,...");
  app->add_option("--hosts-per-region", arguments->hosts_per_region, "import: hosts in each region")
      ->group("Import")
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--inside", arguments->inside,
                  "import: between hosts of one region, where the files do not say")
      ->group("Import")
      ->type_name("LATENCY_MS,GBIT");
  app->add_option("--name", arguments->name, "import: the network's name")
      ->group("Import")
      ->type_name("NAME");
  app->add_option("--hosts", arguments->hosts, "these hosts alone")->group("Network")->type_name("A,B,...");
  app->add_option("--scale", arguments->scale, "divide all bandwidths by this")
      ->group("Network")
      ->type_name("X");
  app->add_option("--out", arguments->out, "also write a cluster file")->group("Output")->type_name("FILE");
  program.notes[app] = {"Cluster files, and the tables that can be imported: docs/formats/cluster.md."};
  program.examples[app] = {"syncopate network list", "syncopate network show worldwide --out my-cluster.toml",
                           "syncopate network import latency.csv throughput.csv --regions "
                           "aws:us-east-1,gcp:europe-west4-a --out two.toml"};
  return [arguments] { return run(*arguments); };
}

}  // namespace syncopate::cli
