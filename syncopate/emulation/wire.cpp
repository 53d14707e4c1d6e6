#include "syncopate/emulation/wire.h"

#include <algorithm>
#include <cmath>

namespace syncopate::emulation {
namespace {

/// What may wait: as much as is on the way in a round trip, so that TCP, which cuts its window by a third or
/// a half after a loss, keeps the link busy. Where that is less: some tens of milliseconds, so
/// that most bursts of an exchange fit, and a few hundred packets.
constexpr double kLeastQueue = 256 * 1500, kLeastQueueMs = 40;

}  // namespace

Wire::Wire(const network::Link& link, double round_trip_ms, uint64_t seed) : rng_(seed) {
  link_ = link;
  ns_per_byte_ = 8 / link.gbit;
  set_round_trip(round_trip_ms);
}

void Wire::change(const network::Link& link, double round_trip_ms, int64_t now, std::vector<int64_t>& dues) {
  const double slower = link_.gbit / link.gbit, old_way = link_.latency_ms * 1e6,
               new_way = link.latency_ms * 1e6;
  const auto start = static_cast<double>(now);
  const auto stretched = [&](double leaves) { return start + (leaves - start) * slower; };
  int64_t last = 0;
  for (int64_t& due : dues) {
    const double leaves = static_cast<double>(due) - old_way;
    if (leaves > start) due = static_cast<int64_t>(std::llround(stretched(leaves) + new_way));
    last = due = std::max(due, last);
  }
  if (free_at_ > start) free_at_ = stretched(free_at_);
  last_due_ = last;
  link_ = link;
  cut_ = false;
  ns_per_byte_ = 8 / link.gbit;
  set_round_trip(round_trip_ms);
}

void Wire::set_round_trip(double round_trip_ms) {
  queue_bytes_ = std::max(kLeastQueue, std::max(kLeastQueueMs, round_trip_ms) * 1e6 / ns_per_byte_);
}

std::optional<int64_t> Wire::send(int64_t now, int64_t wire_bytes, int segments) {
  const auto size = static_cast<double>(wire_bytes);
  const double waiting = std::max(0.0, free_at_ - static_cast<double>(now)) / ns_per_byte_;
  const bool full = waiting > 0 && waiting + size > queue_bytes_;
  if (cut_ || full || (link_.loss > 0 && rng_.uniform() < link_.loss)) {
    dropped_ += segments;
    return std::nullopt;
  }
  const double sending = size * ns_per_byte_;
  free_at_ = std::max(free_at_, static_cast<double>(now)) + sending;
  double way = link_.latency_ms * 1e6;
  if (link_.jitter_ms > 0) way = std::max(0.0, way + (2 * rng_.uniform() - 1) * link_.jitter_ms * 1e6);
  bytes_ += size;
  busy_ns_ += sending;
  last_due_ = std::max(last_due_, static_cast<int64_t>(std::llround(free_at_ + way)));
  return last_due_;
}

}  // namespace syncopate::emulation
