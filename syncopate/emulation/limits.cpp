#include "syncopate/emulation/limits.h"

#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/emulation/hosts.h"

namespace syncopate::emulation {

void check_can_be_emulated(const network::Topology& topology) {
  if (topology.size() == 0) throw ConfigError("a lab needs at least one host");
  if (topology.size() > kMostHosts)
    throw ConfigError("network {} has {} hosts, and a lab holds at most {}; choose some with --hosts",
                      topology.name(), topology.size(), kMostHosts);
  double most = 0;
  int from = 0, to = 0;
  for (int a = 0; a < topology.size(); ++a) {
    for (int b = 0; b < topology.size(); ++b) {
      if (a == b || topology.link(a, b).gbit <= most) continue;
      most = topology.link(a, b).gbit;
      from = a;
      to = b;
    }
  }
  if (most > kMostGbit) {
    const auto& hosts = topology.hosts();
    throw ConfigError(
        "network {}: {} Gbit/s from {} to {} is more than one machine can emulate ({} Gbit/s a link); divide "
        "all rates by {} or more with --scale",
        topology.name(), most, hosts[static_cast<size_t>(from)].name, hosts[static_cast<size_t>(to)].name,
        kMostGbit, std::ceil(most / kMostGbit));
  }
}

}  // namespace syncopate::emulation
