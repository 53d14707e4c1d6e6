#include "syncopate/emulation/lab.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "syncopate/base/error.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/cli/commands.h"
#include "syncopate/emulation/control.h"
#include "syncopate/emulation/exec.h"
#include "syncopate/network/topology.h"
#include "syncopate/run/launch.h"
#include "syncopate/run/placement.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::cli {
namespace {

struct LabArguments {
  std::string network, hosts, report;
  double scale = 1;
  int workers = 0;
  bool exec = false;
  std::vector<std::string> words;
};

int list() {
  const std::vector<emulation::LabInfo> labs = emulation::list_labs();
  if (labs.empty()) tell("no lab is running");
  for (const emulation::LabInfo& lab : labs) {
    fmt::print("{}  {}, {} hosts ({}), {}, TCP {}, for {}, {}\n", lab.name, lab.network, lab.hosts.size(),
               fmt::join(lab.hosts, ", "), lab.how, lab.congestion_control, duration_for_people(lab.seconds),
               lab.report);
  }
  return 0;
}

int set(const std::vector<std::string>& words) {
  if (words.size() < 4)
    throw ConfigError("lab set needs a lab, a link and what to set: lab set LAB A-B gbit=0.5 latency_ms=20");
  emulation::LinkChange change;
  for (size_t k = 3; k < words.size(); ++k) emulation::read_assignment(words[k], change);
  fmt::print("{}\n", emulation::change_link(words[1], words[2], change));
  return 0;
}

int cut(const std::vector<std::string>& words) {
  if (words.size() != 3) throw ConfigError("lab cut needs a lab and a link: lab cut LAB A-B");
  fmt::print("{}\n", emulation::cut_link(words[1], words[2]));
  return 0;
}

/// Whether the words have this flag, in either form.
bool gives(const std::vector<std::string>& words, const std::string& flag) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return word == flag || word.starts_with(flag + "="); });
}

/// Whether a command says by itself how many workers take part, or its strategy has one or leaves devices to
/// servers.
bool says_how_many(const std::vector<std::string>& words) {
  if (gives(words, "--workers") || gives(words, "--config") || gives(words, "--resume") ||
      gives(words, "--placement"))
    return true;
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    const std::string value = word.substr(word.find_last_of('=') + 1);
    return word.find("comm.workers=") != std::string::npos ||
           std::any_of(spec::strategies().begin(), spec::strategies().end(), [&](const auto& info) {
             return info.name == value && (info.has_servers || info.one_worker);
           });
  });
}

int devices_of(const network::Topology& topology, const std::string& hosts) {
  int devices = 0;
  for (const network::Part& part : network::parts_of(topology, hosts)) devices += part.devices;
  return devices;
}

/// The same command with the network among its settings.
int run_ours(const LabArguments& arguments, char** argv) {
  static const std::vector<std::string> known{"train", "probe", "evaluate"};
  const std::string& command = arguments.words.front();
  if (std::find(known.begin(), known.end(), command) == known.end())
    throw ConfigError("lab cannot run \"{}\"{}; any program runs with --exec", command,
                      suggestion(command, known));
  if (arguments.workers != 0 || !arguments.report.empty())
    throw ConfigError("--workers and --report of lab belong to --exec; put {}'s own behind {}", command,
                      command);
  const auto once = [&](bool given, const char* flag) {
    if (given && gives(arguments.words, flag))
      throw ConfigError("lab has {} before `--`, and {} has another behind it; leave that out", flag,
                        command);
  };
  once(true, "--network");
  once(!arguments.hosts.empty(), "--hosts");
  once(arguments.scale != 1, "--scale");
  std::vector<std::string> words{argv[0]};
  words.insert(words.end(), arguments.words.begin(), arguments.words.end());
  words.insert(words.end(), {"--network", arguments.network});
  if (!arguments.hosts.empty()) words.insert(words.end(), {"--hosts", arguments.hosts});
  if (!arguments.hosts.empty() && command != "evaluate" && !says_how_many(arguments.words)) {
    const network::Topology whole = network::load(arguments.network);
    words.insert(words.end(), {"--workers", std::to_string(devices_of(whole, arguments.hosts))});
  }
  if (arguments.scale != 1) words.insert(words.end(), {"--scale", fmt::format("{}", arguments.scale)});
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv("/proc/self/exe", pointers.data());
  throw ConfigError("cannot start {}: {}", command, std::generic_category().message(errno));
}

/// The hosts that take part, each with the devices that do.
network::Topology chosen(const LabArguments& arguments) {
  const network::Topology whole = network::load(arguments.network).scaled(arguments.scale);
  int devices = 0;
  if (arguments.workers > 0) {
    devices = arguments.workers;
  } else if (arguments.hosts.empty()) {
    devices = whole.devices();
  } else {
    devices = devices_of(whole, arguments.hosts);
  }
  std::vector<int> taking_part;
  std::vector<int> sitting;
  for (const int host : network::seats(whole, arguments.hosts, devices)) {
    if (taking_part.empty() || taking_part.back() != host) {
      taking_part.push_back(host);
      sitting.push_back(0);
    }
    ++sitting.back();
  }
  const network::Topology part = whole.only(taking_part);
  std::vector<network::Host> hosts = part.hosts();
  std::vector<network::Link> links;
  for (size_t k = 0; k < hosts.size(); ++k) hosts[k].devices = sitting[k];
  for (int from = 0; from < part.size(); ++from) {
    for (int to = 0; to < part.size(); ++to) links.push_back(part.link(from, to));
  }
  return network::Topology(part.name(), std::move(hosts), std::move(links));
}

int execute(const LabArguments& arguments, char** argv) {
  if (const auto lab = emulation::inside()) {
    if (!emulation::is_program_of_lab())
      throw ConfigError("this runs inside lab {} already, which holds no other network: leave `lab` out",
                        lab->name());
    const int code = emulation::run_on_every_device(*lab, arguments.words);
    const auto report = run::report_of_lab([](const std::string& note) { tell("note: {}", note); });
    if (report && !report->trustworthy)
      tell("syncopate: {}; do not trust times measured in it", run::why_not_trusted(*report));
    return code;
  }
  emulation::LabOptions options{.topology = chosen(arguments)};
  options.report = arguments.report;
  options.argv = run::words_of(argv);
  return emulation::run_in_lab(options);
}

int lab(const LabArguments& arguments, char** argv) {
  const std::string first = arguments.words.empty() ? "" : arguments.words.front();
  if (arguments.network.empty()) {
    if (first == "list" && arguments.words.size() == 1) return list();
    if (first == "set") return set(arguments.words);
    if (first == "cut") return cut(arguments.words);
    throw ConfigError(
        "lab needs --network FILE|PRESET and what to run in it, or list, set or cut; see "
        "`syncopate lab --help`");
  }
  if (arguments.words.empty())
    throw ConfigError("lab needs what to run in the network: `-- train ...`, or `--exec -- COMMAND`");
  if (!(arguments.scale > 0)) throw ConfigError("--scale must be above 0, got {}", arguments.scale);
  return arguments.exec ? execute(arguments, argv) : run_ours(arguments, argv);
}

}  // namespace

Command add_lab(Program& program, char** argv) {
  CLI::App* app = program.app.add_subcommand(
      "lab", "Run a command on a network that is emulated on this machine, or change one that runs");
  auto arguments = std::make_shared<LabArguments>();
  app->add_option("words", arguments->words,
                  "`list`, `set LAB A-B gbit=X latency_ms=Y`, `cut LAB A-B`, or behind -- what to run")
      ->type_name("COMMAND");
  app->add_option("--network", arguments->network, "a cluster file, or one of the presets")
      ->type_name("FILE|PRESET");
  app->add_option("--hosts", arguments->hosts,
                  "the hosts that take part, by name or number, separated by commas (default: as many as are "
                  "needed, from all regions in turn)")
      ->type_name("A,B,...");
  app->add_option("--scale", arguments->scale, "divide all bandwidths by this")
      ->type_name("X")
      ->default_str("1");
  app->add_flag("--exec", arguments->exec,
                "run any command, once per device, with torchrun's variables (RANK, WORLD_SIZE, ...)");
  app->add_option("--workers", arguments->workers, "with --exec: how many devices take part (default: all)")
      ->check(CLI::Range(1, 100000))
      ->type_name("INT");
  app->add_option("--report", arguments->report,
                  "with --exec: take what the lab measured of itself: each link's bytes, lateness")
      ->type_name("FILE");
  program.choices[app->get_option("--network")] = network::preset_names();
  program.notes[app] = {
      "Each host is a network namespace; packets between them pass a switch in this program that holds every "
      "link's rate and latency. It needs root, or user namespaces. Nothing outside is touched, and "
      "everything "
      "is gone when the command ends.",
      "`lab ... -- train ...` is `train ... --network`. While a lab runs, `lab list` shows its name, `lab "
      "set` "
      "changes a link in both directions (gbit, latency_ms, jitter_ms, loss) and `lab cut` cuts it until the "
      "next `set`."};
  program.examples[app] = {
      "syncopate lab --network worldwide --scale 10 -- train --task supersense --model bert-tiny --workers 4",
      "syncopate lab --network two-sites --workers 2 --exec -- python3 train.py",
      "syncopate lab set two-sites-4711 ohio-0-virginia-0 gbit=0.1 latency_ms=40"};
  return [arguments, argv] { return lab(*arguments, argv); };
}

}  // namespace syncopate::cli
