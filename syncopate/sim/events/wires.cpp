#include "syncopate/sim/events/wires.h"

#include <algorithm>
#include <utility>

namespace syncopate::sim {

Wires::Wires(const network::Topology& topology, std::vector<int> seats, const LocalCosts& costs)
    : topology_(topology),
      seats_(std::move(seats)),
      // An all-reduce of no size between two is four messages, one behind the other.
      hop_s_(costs.operation_s / 4),
      loopback_(bytes_per_s(costs.loopback_gbyte)) {}

Wire& Wires::between(int from, int to) {
  const int a = host(from), b = host(to);
  // Between processes of one host memory is no bottleneck that pairs share; a link is.
  const bool inside = a == b;
  constexpr size_t kFewHosts = 2048;
  const size_t hosts = topology_.hosts().size();
  if (wire_between_.empty() && hosts <= kFewHosts) wire_between_.assign(hosts * hosts, -1);
  int* const place = inside || hosts > kFewHosts
                         ? nullptr
                         : &wire_between_[static_cast<size_t>(a) * hosts + static_cast<size_t>(b)];
  if (place != nullptr && *place >= 0) return wires_[static_cast<size_t>(*place)];
  const auto key = (static_cast<uint64_t>(inside ? from : a) << 32) | (inside ? 1u << 31 : 0u) |
                   static_cast<uint32_t>(inside ? to : b);
  if (place == nullptr) {
    const auto found = wire_of_.find(key);
    if (found != wire_of_.end()) return wires_[found->second];
  }
  const network::Link& link = topology_.link(a, b);
  const double rate = std::min(link.gbit * 1e9 / 8 * (inside ? 1 : network::kPayloadShare), loopback_);
  if (place == nullptr) {
    wire_of_[key] = wires_.size();
  } else {
    *place = static_cast<int>(wires_.size());
  }
  wires_.push_back({.from = a, .to = b, .rate = rate, .latency = link.latency_ms / 1e3});
  return wires_.back();
}

/// What is left of a link's rate, with what it carries from `start` on. Acknowledgements wait behind what
/// goes the other way, so hosts that send to each other for long do not fill their link, the less the farther
/// they are.
double Wires::fullness(Wire& way, const Wire& back, double start, double bytes) {
  if (way.from == way.to) return 1;
  const double trip = way.latency + back.latency;
  if (start - way.free > trip) way.stretch = 0;
  way.stretch += bytes;
  constexpr double kNearby = 0.02;  // there a window is soon what it was before a loss
  if (trip < kNearby) return 1;
  // Where a loss comes first: the window begins with what a round trip holds, and the queue holds as much, or
  // some tens of milliseconds.
  constexpr double kTrips = 3, kQueue = 0.04;
  const auto is_long = [&](const Wire& wire) {
    return wire.stretch > kTrips * std::max(trip, kQueue) * wire.rate;
  };
  if (!is_long(way) || !is_long(back) || start - back.free > trip) return 1;
  // iperf3 both ways at once in the lab, cubic, 5 to 100 Mbit/s: 0.85 at 50 ms there and back, 0.66 to 0.74
  // at 344.
  constexpr double kNear = 0.875, kLost = 0.62, kLeast = 0.5;
  return std::max(kLeast, kNear - kLost * trip);
}

double Wires::write(int from, int to, double bytes, double now) {
  Wire& way = between(from, to);
  const double start = std::max(now, way.free);
  const double seconds = bytes / (way.rate * fullness(way, between(to, from), start, bytes));
  way.free = start + seconds;
  way.bytes += bytes;
  way.busy += seconds;
  return way.free + way.latency + hop_s_;
}

std::vector<WireUse> Wires::uses() const {
  std::vector<WireUse> uses;
  for (const Wire& way : wires_) {
    if (way.from != way.to && way.bytes > 0) uses.push_back({way.from, way.to, way.bytes, way.busy});
  }
  return uses;
}

}  // namespace syncopate::sim
