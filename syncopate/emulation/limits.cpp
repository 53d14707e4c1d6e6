#include "syncopate/emulation/limits.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/emulation/hosts.h"

namespace syncopate::emulation {
namespace {

/// As machines have them: what is in /etc/hosts and what the kernel takes.
void check_name(const std::string& name, const std::string& network) {
  constexpr size_t kLongest = 63;
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c < 128 && (std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_');
  });
  if (plain && name.size() <= kLongest) return;
  throw ConfigError(
      "network {}: a lab cannot call a host \"{}\": letters, digits, \".\", \"-\" and \"_\", at most {} of "
      "them",
      network, first_line(name), kLongest);
}

/// To four digits.
double rounded_up(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  return std::ceil(value / unit - 1e-6) * unit;
}

}  // namespace

double busiest_gbit(const network::Topology& topology) {
  double sum = 0;
  for (int from = 0; from < topology.size(); ++from) {
    double most = 0;
    for (int to = 0; to < topology.size(); ++to) {
      if (from != to) most = std::max(most, topology.link(from, to).gbit);
    }
    sum += most;
  }
  return sum;
}

void check_can_be_emulated(const network::Topology& topology) {
  if (topology.size() == 0) throw ConfigError("a lab needs at least one host");
  if (topology.size() > kMostHosts)
    throw ConfigError("network {} has {} hosts, and a lab holds at most {}; choose some with --hosts",
                      topology.name(), topology.size(), kMostHosts);
  for (const network::Host& host : topology.hosts()) check_name(host.name, topology.name());
  const double together = busiest_gbit(topology);
  if (together > kMostGbit * (1 + 1e-9)) {
    throw ConfigError(
        "network {}: its {} hosts can send {:.4g} Gbit/s together, each over its fastest link, and one "
        "machine "
        "emulates {} Gbit/s; divide all rates by {:.4g} or more with --scale",
        topology.name(), topology.size(), together, kMostGbit, rounded_up(together / kMostGbit));
  }
}

}  // namespace syncopate::emulation
