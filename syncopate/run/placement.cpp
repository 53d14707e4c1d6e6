#include "syncopate/run/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/run/launch.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::run {

Placement place(const spec::RunSpec& spec, int processes) {
  const network::Topology whole = network::load(spec.network.name);
  const std::vector<int> seats = network::seats(whole, spec.network.hosts, processes);
  std::vector<int> used;
  Placement placement;
  for (const int host : seats) {
    auto found = std::find(used.begin(), used.end(), host);
    if (found == used.end()) found = used.insert(used.end(), host);
    placement.seats.push_back(static_cast<int>(found - used.begin()));
  }
  if (used.size() > 1 && spec::strategy_info(spec.strategy.name).one_host) {
    const auto roomy = std::find_if(whole.hosts().begin(), whole.hosts().end(),
                                    [&](const network::Host& host) { return host.devices >= processes; });
    throw ConfigError(
        "the workers of {} share memory, which does not cross from {} to {} of the network {}; {}choose "
        "another strategy",
        spec.strategy.name, whole.hosts()[static_cast<size_t>(used[0])].name,
        whole.hosts()[static_cast<size_t>(used[1])].name, whole.name(),
        roomy == whole.hosts().end()
            ? ""
            : fmt::format("seat them on one host with --hosts {}, or ", roomy->name));
  }
  placement.topology = whole.only(used).scaled(spec.network.scale);
  return placement;
}

bool needs_lab(const spec::RunSpec& spec) {
  if (spec.network.name.empty()) return false;
  const auto lab = emulation::inside();
  if (lab && !emulation::is_program_of_lab()) {
    throw ConfigError("this runs inside lab {} already, which holds no other network: leave --network {} out",
                      lab->name(), spec.network.name);
  }
  return !lab;
}

std::optional<emulation::LabReport> report_of_lab(const std::function<void(const std::string&)>& note) {
  try {
    return emulation::ask_report();
  } catch (const std::exception& error) {
    if (note)
      note(fmt::format("what the emulated network did is not recorded: {}", first_line(error.what())));
    return std::nullopt;
  }
}

std::string why_not_trusted(const emulation::LabReport& report) {
  if (!report.trustworthy) {
    return fmt::format(
        "the machine was too busy for this network: {:.1f} % of packets came late (99 % within {:.2f} ms)",
        100 * report.late_share, report.late_ms_p99);
  }
  return report.changed > 0 ? "a link was changed meanwhile" : "";
}

int run_in_network(const spec::RunSpec& spec, int processes, char** argv) {
  emulation::LabOptions options;
  options.topology = place(spec, processes).topology;
  options.argv = words_of(argv);
  // Inside, processes have other numbers, and their parent is the lab.
  options.environment["SYNCOPATE_LAUNCHER_PID"] = "";
  return emulation::run_in_lab(options);
}

record::NetworkRecord network_record(const spec::RunSpec& spec, const Placement& placement,
                                     const emulation::LabReport& meanwhile, int64_t steps) {
  record::NetworkRecord record;
  record.name = placement.topology.name();
  record.scale = spec.network.scale;
  record.how = meanwhile.how;
  record.congestion_control = meanwhile.congestion_control;
  record.late_ms_p99 = meanwhile.late_ms_p99;
  record.trustworthy = why_not_trusted(meanwhile).empty();
  for (const network::Host& host : placement.topology.hosts())
    record.hosts.push_back({host.name, host.region});
  record.seats.assign(placement.seats.begin(), placement.seats.end());
  const auto use = [&](int from, int to) {
    const auto found = std::find_if(meanwhile.links.begin(), meanwhile.links.end(),
                                    [&](const auto& link) { return link.from == from && link.to == to; });
    return found == meanwhile.links.end() ? emulation::LabReport::LinkUse{} : *found;
  };
  for (int from = 0; from < placement.topology.size(); ++from) {
    for (int to = 0; to < placement.topology.size(); ++to) {
      if (from == to) continue;
      const auto used = use(from, to);
      const network::Link& asked = placement.topology.link(from, to);
      record.links.push_back({.from = from,
                              .to = to,
                              .latency_ms = used.gbit > 0 ? used.latency_ms : asked.latency_ms,
                              .gbit = used.gbit > 0 ? used.gbit : asked.gbit,
                              .bytes = used.bytes / static_cast<double>(std::max<int64_t>(1, steps)),
                              .busy = meanwhile.seconds > 0 ? used.busy_seconds / meanwhile.seconds : 0});
    }
  }
  return record;
}

std::string network_in_words(const spec::RunSpec& spec, const Placement& placement) {
  std::string words = placement.topology.name();
  if (spec.network.scale != 1) words += fmt::format(", rates divided by {}", spec.network.scale);
  const auto& hosts = placement.topology.hosts();
  words += hosts.size() == 1 ? std::string(" · on ") : fmt::format(" · on {} hosts: ", hosts.size());
  constexpr size_t kNamed = 6;
  for (size_t i = 0; i < std::min(hosts.size(), kNamed); ++i) words += (i > 0 ? ", " : "") + hosts[i].name;
  return hosts.size() > kNamed ? words + ", ..." : words;
}

}  // namespace syncopate::run
