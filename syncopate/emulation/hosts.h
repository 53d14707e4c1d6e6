#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncopate/base/descriptor.h"
#include "syncopate/emulation/netlink.h"
#include "syncopate/network/topology.h"

namespace syncopate::emulation {

inline constexpr uint32_t kNetwork = (10u << 24) | (86u << 16);  ///< 10.86.0.0
inline constexpr int kPrefixLength = 16;
inline constexpr int kMtu = 1500;
inline constexpr int kMostHosts = 200;
inline constexpr int64_t kMostTcpBuffer = 1 << 30;  ///< what TCP may keep for one connection

/// 10.86.0.1 is host 0.
constexpr uint32_t address_of(int host) { return kNetwork + static_cast<uint32_t>(host) + 1; }
std::string address_text(int host);
Mac mac_of(int host);

/// A host's network namespace with "lo" and "eth0", whose other end lies in the lab's own namespace.
struct HostSide {
  Descriptor network_namespace;
  int outer_interface = 0;
};

/// Makes one for every host of the topology. The calling thread must be the only one and sit in the lab's own
/// network namespace; it is there again afterwards. `congestion_control` takes the one that TCP uses inside.
/// Throws std::system_error.
std::vector<HostSide> make_hosts(const network::Topology& topology, std::string& congestion_control);

/// What a connection may keep from its start: several times what is on the way of such a link. The kernel
/// counts its own bookkeeping.
int64_t tcp_buffer(double gbit, double round_trip_ms);
/// For the longest and fastest link.
int64_t tcp_buffer(const network::Topology& topology);

/// After a link of the host has changed: one that loses packets loses single ones. May be called from any
/// thread; throws std::system_error.
void adapt_host(const HostSide& host, const network::Link& link);

}  // namespace syncopate::emulation
