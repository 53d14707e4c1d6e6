#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/lifeline/lifeline.h"
#include "syncopate/network/topology.h"
#include "syncopate/run/probe/probe_roll.h"

namespace syncopate::run {

struct LinkProbeOptions {
  Seat seat{};
  std::string
      address{};         ///< of this host, as the others reach it; empty: the one that reaches the rendezvous
  bool measures = true;  ///< false: only finds who sits where
  double seconds = 30;   ///< roughly how long all pairs together may take
  std::chrono::milliseconds timeout{60000};  ///< a partner silent for longer is lost
  /// Told at rank 0 after each of its own pairs, which are about as far as the others'. May be empty.
  std::function<void(int done, int all, const std::string& what)> progress{};
};

/// The measured network, known at rank 0.
struct MeasuredLinks {
  network::Topology topology{};  ///< a host for each that ranks sit on, a device for each rank
  std::vector<int> seats{};      ///< the host of each rank
  bool one_machine = false;      ///< whose cores all of them compute on
  /// Pairs of hosts whose rate had not settled when the time was up.
  std::vector<std::string> unsteady{};
};

/// What is on the wire, in Gbit/s to four digits, where so many bytes of payload came in a second: between
/// two hosts, or inside of one (`payload_share` 1). Throws CommError where nothing came.
double gbit_on_wire(double bytes_per_second, double payload_share, const std::string& from,
                    const std::string& to);

/// Measures the latency and the rate of every ordered pair of hosts that ranks sit on, and between two ranks
/// of a host that has several, over TCP connections of its own: one each, with the system's buffers, as
/// Gloo's are. A host takes part in one pair at a time, or two where all hosts are emulated on one machine.
/// Latencies are half of the shortest round trips; rates are taken at the receiver once they no longer grow,
/// both directions at once, and are converted to what is on the wire. Collective. Throws CommError.
std::optional<MeasuredLinks> probe_links(lifeline::Lifeline& lifeline, const LinkProbeOptions& options);

}  // namespace syncopate::run
