#pragma once

#include <string>
#include <string_view>
#include <vector>

// Who is where, and what lies between: hosts, their regions and the links.
namespace syncopate::network {

/// One direction between two hosts, or between two devices of one host.
struct Link {
  double latency_ms = 0;  ///< one way
  double gbit = 0;        ///< gigabits a second on the wire, TCP's and IP's headers included
  double jitter_ms = 0;   ///< how much the latency varies, at most, up and down
  double loss = 0;        ///< share of packets, from 0 to less than 1
  bool operator==(const Link&) const = default;
};

/// Between devices of one host where nothing is said: memory.
inline constexpr Link kMemory{.latency_ms = 0, .gbit = 100};

struct Host {
  std::string name{};
  std::string region{};
  int devices = 1;
  double speed = 1;       ///< of a device, relative to the one that a profile was measured on
  double memory_gib = 0;  ///< of a device; 0: not known
  double price_hour = 0;  ///< of the host; 0: not known
  bool operator==(const Host&) const = default;
};

/// A cluster: hosts and a link for every ordered pair of them. A host's link to itself joins its devices.
class Topology {
 public:
  Topology() = default;
  /// `links` row by row: that from host a to host b is links[a * hosts + b]. Throws ConfigError for what
  /// cannot be: no host, a name twice, a rate that is not above 0, a negative latency, another number of
  /// links.
  Topology(std::string name, std::vector<Host> hosts, std::vector<Link> links);

  const std::string& name() const { return name_; }
  const std::vector<Host>& hosts() const { return hosts_; }
  int size() const { return static_cast<int>(hosts_.size()); }
  const Link& link(int from, int to) const;
  std::vector<std::string> regions() const;  ///< each once, as they first appear

  int devices() const { return static_cast<int>(host_of_device_.size()); }
  /// Devices are numbered from 0, host by host.
  int host_of(int device) const { return host_of_device_.at(static_cast<size_t>(device)); }
  const Link& between_devices(int from, int to) const { return link(host_of(from), host_of(to)); }

  /// Its number; throws ConfigError with a suggestion. Takes names and numbers from 0.
  int find(std::string_view host) const;

  /// The same network with every rate between hosts divided by `factor`.
  Topology scaled(double factor) const;
  /// These hosts alone, in this order.
  Topology only(const std::vector<int>& hosts) const;

  bool operator==(const Topology&) const = default;

 private:
  std::string name_;
  std::vector<Host> hosts_;
  std::vector<Link> links_;
  std::vector<int> host_of_device_;
};

/// What of a link's rate is payload: TCP over IPv4 with timestamps sends 1,448 of 1,500 bytes.
inline constexpr double kPayloadShare = 1448.0 / 1500.0;

/// Some devices of a host.
struct Part {
  int host = 0, devices = 1;
};
/// What `hosts` names, separated by commas: "ohio-0,virginia-1:2" are all devices of one host and two of
/// another. Throws ConfigError.
std::vector<Part> parts_of(const Topology& topology, std::string_view hosts);

/// Where the workers (and servers, behind them) of a run sit: a host of the topology for each rank. `hosts`
/// names some, as parts_of reads them; empty: as many as there are ranks, taken from the regions in turn.
/// Ranks are dealt out one device per host until all sit; those of one host have neighbouring numbers. Throws
/// ConfigError where there are more ranks than devices.
std::vector<int> seats(const Topology& topology, std::string_view hosts, int ranks);

/// A cluster file (docs/formats/cluster.md), or one of the presets by its name. Throws ConfigError or
/// DataError.
Topology load(const std::string& file_or_preset);
const std::vector<std::string>& preset_names();

Topology from_toml(std::string_view text, const std::string& where);
/// A cluster file that gives the same topology: a link a region pair where the hosts' links allow it.
std::string to_toml(const Topology& topology);

}  // namespace syncopate::network
