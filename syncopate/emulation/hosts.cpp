#include "syncopate/emulation/hosts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <thread>

namespace syncopate::emulation {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

Descriptor this_namespace() {
  Descriptor here(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!here.open()) fail("cannot open /proc/thread-self/ns/net");
  return here;
}

/// Of the namespace that the caller sits in. A kernel that lacks one of them does without.
void set_sysctl(const char* name, const std::string& value) {
  std::ofstream file(std::string("/proc/sys/net/") + name);
  file << value << std::flush;
}

/// A connection starts with so much; the kernel gives it more as it needs it, for a link that is changed too.
void set_tcp_buffers(int64_t first) {
  for (const char* name : {"ipv4/tcp_rmem", "ipv4/tcp_wmem"})
    set_sysctl(name, fmt::format("4096 {} {}", first, kMostTcpBuffer));
}

int index_of(const char* interface) {
  const unsigned index = ::if_nametoindex(interface);
  if (index == 0) fail("an interface that was just made is not there");
  return static_cast<int>(index);
}

std::string default_congestion_control() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string name = "the kernel's default";
  file >> name;
  return name;
}

/// What TCP uses on a host.
struct CongestionControl {
  std::string name;
  std::string for_routes;  ///< the same where only routes can say it; programs cannot choose another then
};

/// The first that the kernel has: cubic is what most machines use.
CongestionControl choose_congestion_control(Netlink& netlink, int interface) {
  for (const char* name : {"cubic", "reno"}) {
    set_sysctl("ipv4/tcp_congestion_control", name);
    if (default_congestion_control() == name) return {name, ""};
    try {
      netlink.set_route({.interface = interface,
                         .network = kNetwork,
                         .prefix_length = kPrefixLength,
                         .congestion_control = name});
      return {name, name};
    } catch (const std::system_error&) {
    }
  }
  return {default_congestion_control(), ""};
}

/// What is on the way in a round trip, in packets: a connection that has been used for a while sends so much
/// before it waits, and one that is new starts with a few packets. Workers keep theirs for hours, so in a lab
/// all start with the first.
int first_window(const network::Topology& topology, int from, int to) {
  constexpr double kUsual = 10, kMost = 1 << 17;
  const double round_trip_ms = topology.link(from, to).latency_ms + topology.link(to, from).latency_ms;
  const double bytes = topology.link(from, to).gbit * 1e9 / 8 * round_trip_ms / 1e3;
  return static_cast<int>(std::min(kUsual + bytes / kMtu, kMost));
}

bool loses(const network::Topology& topology, int host) {
  for (int to = 0; to < topology.size(); ++to) {
    if (to != host && topology.link(host, to).loss > 0) return true;
  }
  return false;
}

}  // namespace

std::string address_text(int host) {
  const uint32_t address = address_of(host);
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255,
                     address & 255);
}

Mac mac_of(int host) {
  const auto number = static_cast<unsigned>(host) + 1;
  return {0x02, 0x53, 0x59, 0x4e, static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)};
}

int64_t tcp_buffer(double gbit, double round_trip_ms) {
  const double on_the_way = gbit * 1e9 / 8 * round_trip_ms / 1e3;
  // The kernel counts its own bookkeeping, about as much again, and the queue before the link fills too.
  constexpr double kTimes = 3, kLeast = 8 << 20;
  return static_cast<int64_t>(std::clamp(kTimes * on_the_way, kLeast, kMostTcpBuffer / 2.0));
}

int64_t tcp_buffer(const network::Topology& topology) {
  int64_t most = tcp_buffer(0, 0);
  for (int from = 0; from < topology.size(); ++from) {
    for (int to = 0; to < topology.size(); ++to) {
      if (from == to) continue;
      const network::Link &there = topology.link(from, to), &back = topology.link(to, from);
      most = std::max(most, tcp_buffer(there.gbit, there.latency_ms + back.latency_ms));
    }
  }
  return most;
}

std::vector<HostSide> make_hosts(const network::Topology& topology, std::string& congestion_control) {
  const Descriptor home = this_namespace();
  set_sysctl("ipv6/conf/default/disable_ipv6", "1");
  set_sysctl("ipv6/conf/all/disable_ipv6", "1");
  const int64_t buffer = tcp_buffer(topology);
  std::vector<HostSide> hosts;
  for (int k = 0; k < topology.size(); ++k) {
    if (::unshare(CLONE_NEWNET) != 0) fail("cannot make a network namespace");
    HostSide host;
    host.network_namespace = this_namespace();
    set_sysctl("ipv6/conf/default/disable_ipv6", "1");
    set_tcp_buffers(buffer);
    // A worker computes between two exchanges; the link between is still the same.
    set_sysctl("ipv4/tcp_slow_start_after_idle", "0");
    set_sysctl("ipv4/tcp_no_metrics_save", "1");
    set_sysctl("ipv4/ping_group_range", "0 0");
    Netlink netlink;
    netlink.bring_up(index_of("lo"), false);
    const std::string outer = fmt::format("host{}", k);
    netlink.add_veth(
        {.name = "eth0", .mac = mac_of(k), .peer_name = outer, .peer_namespace = home.get(), .mtu = kMtu});
    const int inner = index_of("eth0");
    netlink.bring_up(inner, true);
    netlink.add_address(inner, address_of(k), kPrefixLength);
    const CongestionControl chosen = choose_congestion_control(netlink, inner);
    for (int to = 0; to < topology.size(); ++to) {
      if (to == k) continue;
      netlink.set_route({.interface = inner,
                         .network = address_of(to),
                         .congestion_control = chosen.for_routes,
                         .first_window = first_window(topology, k, to)});
    }
    congestion_control = chosen.name;
    if (loses(topology, k)) netlink.send_single_segments(inner, true);
    if (::setns(home.get(), CLONE_NEWNET) != 0) fail("cannot return to the lab's network namespace");
    host.outer_interface = index_of(outer.c_str());
    Netlink().bring_up(host.outer_interface, true);
    hosts.push_back(std::move(host));
  }
  return hosts;
}

void adapt_host(const HostSide& host, const network::Link& link) {
  if (link.loss == 0) return;
  std::exception_ptr error;
  // A namespace is a thread's: this one comes and goes.
  std::thread([&] {
    try {
      if (::setns(host.network_namespace.get(), CLONE_NEWNET) != 0) fail("cannot enter a host");
      Netlink().send_single_segments(index_of("eth0"), true);
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

}  // namespace syncopate::emulation
