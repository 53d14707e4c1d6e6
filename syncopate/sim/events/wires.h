#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "syncopate/network/topology.h"
#include "syncopate/sim/profile.h"

namespace syncopate::sim {

/// One way between two hosts, or between two processes of a host.
struct Wire {
  int from, to;  ///< hosts
  double rate, latency;
  double free = 0, bytes = 0, busy = 0;
  double stretch = 0;  ///< bytes since it was last idle
  int round = -1;      ///< the operation that was last played in rounds over it
  double until = 0;    ///< when it is done with that
};

/// What one way between hosts has carried.
struct WireUse {
  int from, to;  ///< hosts
  double bytes, busy_s;
};

/// The ways between ranks: what goes between two hosts goes in the order in which it was written. The
/// topology must outlive them.
class Wires {
 public:
  Wires(const network::Topology& topology, std::vector<int> seats, const LocalCosts& costs);

  /// Puts bytes on the way from a rank to another; when they are there and noticed.
  double write(int from, int to, double bytes, double now);
  /// The way itself, for those who reckon with whole rounds. It stays where it is.
  Wire& between(int from, int to);
  /// Seconds of either end for a message, beside the way's.
  double hop_s() const { return hop_s_; }

  size_t ranks() const { return seats_.size(); }
  int host(int rank) const { return seats_[static_cast<size_t>(rank)]; }
  /// Within a host.
  const network::Link& memory(int host) const { return topology_.link(host, host); }

  std::vector<WireUse> uses() const;  ///< between different hosts

 private:
  static double fullness(Wire& way, const Wire& back, double start, double bytes);

  const network::Topology& topology_;
  std::vector<int> seats_;
  double hop_s_, loopback_;
  std::deque<Wire> wires_{};
  std::unordered_map<uint64_t, size_t> wire_of_{};
  std::vector<int> wire_between_{};  ///< of `from * hosts + to`: its number; -1: none yet. Of few hosts
};

}  // namespace syncopate::sim
