#include "syncopate/network/topology.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::network {
namespace {

/// Rates outside of these are mistakes: 1 bit/s, and far more than any wire carries.
constexpr double kLeastGbit = 1e-9, kMostGbit = 1e6;

void require(bool holds, const std::string& network, const std::string& sentence) {
  if (!holds) throw ConfigError("network {}: {}", network, sentence);
}

void check_host(const Host& host, const std::string& network) {
  require(!host.name.empty(), network, "a host has no name");
  const std::string who = fmt::format("host {}", host.name);
  require(host.name.find(',') == std::string::npos, network, who + ": a name may not hold a comma");
  require(host.devices >= 1, network,
          fmt::format("{}: devices must be 1 or more, got {}", who, host.devices));
  require(std::isfinite(host.speed) && host.speed > 0, network,
          fmt::format("{}: speed must be above 0, got {}", who, host.speed));
  require(std::isfinite(host.memory_gib) && host.memory_gib >= 0, network,
          fmt::format("{}: memory_gib must not be negative, got {}", who, host.memory_gib));
  require(std::isfinite(host.price_hour) && host.price_hour >= 0, network,
          fmt::format("{}: price_hour must not be negative, got {}", who, host.price_hour));
}

void check_link(const Link& link, const std::string& who, const std::string& network) {
  require(std::isfinite(link.gbit) && link.gbit > 0, network,
          fmt::format("{}: gbit must be above 0, got {}", who, link.gbit));
  require(link.gbit >= kLeastGbit && link.gbit <= kMostGbit, network,
          fmt::format("{}: gbit must be from {:g} (1 bit/s) to {:g}, got {}", who, kLeastGbit, kMostGbit,
                      link.gbit));
  require(std::isfinite(link.latency_ms) && link.latency_ms >= 0, network,
          fmt::format("{}: latency_ms must not be negative, got {}", who, link.latency_ms));
  require(std::isfinite(link.jitter_ms) && link.jitter_ms >= 0 && link.jitter_ms <= link.latency_ms, network,
          fmt::format("{}: jitter_ms must be from 0 to its latency_ms, got {}", who, link.jitter_ms));
  require(link.loss >= 0 && link.loss < 1, network,
          fmt::format("{}: loss must be from 0 to less than 1, got {}", who, link.loss));
}

/// The first host of each region in turn, then the second, and so on.
std::vector<int> by_regions_in_turn(const Topology& topology) {
  const std::vector<std::string> regions = topology.regions();
  std::vector<std::vector<int>> members(regions.size());
  for (int host = 0; host < topology.size(); ++host) {
    const std::string& region = topology.hosts()[static_cast<size_t>(host)].region;
    members[static_cast<size_t>(std::find(regions.begin(), regions.end(), region) - regions.begin())]
        .push_back(host);
  }
  std::vector<int> order;
  for (size_t k = 0; static_cast<int>(order.size()) < topology.size(); ++k) {
    for (const std::vector<int>& region : members) {
      if (k < region.size()) order.push_back(region[k]);
    }
  }
  return order;
}

}  // namespace

Topology::Topology(std::string name, std::vector<Host> hosts, std::vector<Link> links)
    : name_(std::move(name)), hosts_(std::move(hosts)), links_(std::move(links)) {
  require(!hosts_.empty(), name_, "there is no host; add a [[host]]");
  require(links_.size() == hosts_.size() * hosts_.size(), name_,
          fmt::format("{} hosts need a square matrix of {} links, got {}", hosts_.size(),
                      hosts_.size() * hosts_.size(), links_.size()));
  std::set<std::string> names;
  for (const Host& host : hosts_) {
    check_host(host, name_);
    require(names.insert(host.name).second, name_, fmt::format("host {} is there twice", host.name));
  }
  for (int from = 0; from < size(); ++from) {
    for (int to = 0; to < size(); ++to) {
      Link& each = links_[static_cast<size_t>(from) * hosts_.size() + static_cast<size_t>(to)];
      // Nobody uses the link of a lone device to itself.
      if (from == to && hosts_[static_cast<size_t>(from)].devices == 1) each = kMemory;
      check_link(each,
                 fmt::format("link from {} to {}", hosts_[static_cast<size_t>(from)].name,
                             hosts_[static_cast<size_t>(to)].name),
                 name_);
    }
  }
  for (int host = 0; host < size(); ++host) {
    host_of_device_.insert(host_of_device_.end(),
                           static_cast<size_t>(hosts_[static_cast<size_t>(host)].devices), host);
  }
}

const Link& Topology::link(int from, int to) const {
  return links_.at(static_cast<size_t>(from) * hosts_.size() + static_cast<size_t>(to));
}

std::vector<std::string> Topology::regions() const {
  std::vector<std::string> all;
  std::set<std::string> seen;
  for (const Host& host : hosts_) {
    if (seen.insert(host.region).second) all.push_back(host.region);
  }
  return all;
}

int Topology::find(std::string_view host) const {
  std::vector<std::string> names;
  for (const Host& each : hosts_) names.push_back(each.name);
  const auto found = std::find(names.begin(), names.end(), host);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  if (const auto number = parse_integer(host)) {
    if (*number >= 0 && *number < size()) return static_cast<int>(*number);
    throw ConfigError("network {} has no host {}: they are numbered from 0 to {}", name_, host, size() - 1);
  }
  if (names.size() > 12) {  // too many to name
    const auto near = nearest(host, names);
    throw ConfigError(
        "network {} has no host \"{}\"{}", name_, host,
        near ? fmt::format("; did you mean \"{}\"?", *near)
             : fmt::format("; its {} hosts are called {} to {}", names.size(), names.front(), names.back()));
  }
  throw ConfigError("network {} has no host \"{}\"{}", name_, host, suggestion(host, names));
}

Topology Topology::scaled(double factor) const {
  if (!std::isfinite(factor) || factor <= 0) throw ConfigError("--scale must be above 0, got {}", factor);
  Topology result = *this;
  double slowest = kMostGbit, fastest = kLeastGbit;
  for (int from = 0; from < size(); ++from) {
    for (int to = 0; to < size(); ++to) {
      if (from == to) continue;  // memory is no slower
      double& gbit = result.links_[static_cast<size_t>(from) * hosts_.size() + static_cast<size_t>(to)].gbit;
      slowest = std::min(slowest, gbit);
      fastest = std::max(fastest, gbit);
      gbit /= factor;
    }
  }
  if (slowest / factor < kLeastGbit || fastest / factor > kMostGbit) {
    throw ConfigError(
        "--scale {} makes rates of {:.3g} to {:.3g} Gbit/s of network {}; they have to stay between 1 bit/s "
        "and "
        "{:.0f} Gbit/s: take a scale from {:.3g} to {:.3g}",
        factor, slowest / factor, fastest / factor, name_, kMostGbit, fastest / kMostGbit,
        slowest / kLeastGbit);
  }
  return result;
}

Topology Topology::only(const std::vector<int>& hosts) const {
  std::vector<Host> kept;
  std::vector<Link> links;
  for (const int host : hosts) kept.push_back(hosts_.at(static_cast<size_t>(host)));
  for (const int from : hosts) {
    for (const int to : hosts) links.push_back(link(from, to));
  }
  return Topology(name_, std::move(kept), std::move(links));
}

std::vector<Part> parts_of(const Topology& topology, std::string_view names) {
  std::vector<Part> chosen;
  for (const std::string_view each : split(names, ',')) {
    std::string_view name = trim(each);
    std::optional<int64_t> asked;
    const bool whole = std::any_of(topology.hosts().begin(), topology.hosts().end(),
                                   [&](const Host& host) { return host.name == name; });
    if (const size_t colon = name.rfind(':'); !whole && colon != std::string_view::npos) {
      asked = parse_integer(name.substr(colon + 1)).value_or(0);
      name = name.substr(0, colon);
    }
    const int number = topology.find(name);
    const Host& host = topology.hosts()[static_cast<size_t>(number)];
    if (std::any_of(chosen.begin(), chosen.end(), [&](const Part& part) { return part.host == number; }))
      throw ConfigError("--hosts names {} twice", host.name);
    if (asked && (*asked < 1 || *asked > host.devices)) {
      throw ConfigError("--hosts {} asks for devices that are not there: {} has {}, so take {}:1 to {}:{}",
                        each, host.name, host.devices, host.name, host.name, host.devices);
    }
    chosen.push_back({number, static_cast<int>(asked.value_or(host.devices))});
  }
  return chosen;
}

std::vector<int> seats(const Topology& topology, std::string_view hosts, int ranks) {
  const bool named = !trim(hosts).empty();
  std::vector<Part> order;
  if (named) {
    order = parts_of(topology, hosts);
  } else {
    for (const int host : by_regions_in_turn(topology))
      order.push_back({host, topology.hosts()[static_cast<size_t>(host)].devices});
  }
  int devices = 0;
  for (const Part& part : order) devices += part.devices;
  if (ranks > devices) {
    throw ConfigError("{} processes do not fit on the {} device{} of {}; {}", ranks, devices,
                      devices == 1 ? "" : "s",
                      named ? fmt::format("--hosts {}", hosts) : fmt::format("network {}", topology.name()),
                      named ? "name more hosts" : "take fewer workers");
  }
  std::vector<int> sitting(order.size(), 0);
  for (int left = ranks; left > 0;) {
    for (size_t k = 0; k < order.size() && left > 0; ++k) {
      if (sitting[k] == order[k].devices) continue;
      ++sitting[k];
      --left;
    }
  }
  std::vector<int> result;
  for (size_t k = 0; k < order.size(); ++k)
    result.insert(result.end(), static_cast<size_t>(sitting[k]), order[k].host);
  return result;
}

}  // namespace syncopate::network
