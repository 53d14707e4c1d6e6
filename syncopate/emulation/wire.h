#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "syncopate/base/rng.h"
#include "syncopate/network/topology.h"

namespace syncopate::emulation {

/// One direction between two hosts: says when a packet that comes now arrives at the other end, or that it is
/// lost. A queue before the link, the link's rate, then the way. Times are nanoseconds of any steady clock.
class Wire {
 public:
  Wire() = default;
  Wire(const network::Link& link, double round_trip_ms, uint64_t seed);

  /// When it is due at the other end, never before one that came earlier; nothing: it is dropped.
  std::optional<int64_t> send(int64_t now, int64_t wire_bytes, int segments);

  /// From `now` on. `dues`: when what was taken and has not arrived is due, in order. What still waits before
  /// the link goes at the new rate over the new way; what is on the way arrives as it was told.
  void change(const network::Link& link, double round_trip_ms, int64_t now, std::vector<int64_t>& dues);
  /// As much as is on the way in such a round trip may wait.
  void set_round_trip(double round_trip_ms);
  void cut() { cut_ = true; }
  bool is_cut() const { return cut_; }

  const network::Link& link() const { return link_; }
  double queue_bytes() const { return queue_bytes_; }  ///< how much may wait before the link
  double bytes() const { return bytes_; }              ///< carried so far
  double dropped() const { return dropped_; }          ///< segments
  double busy_seconds() const { return busy_ns_ * 1e-9; }

 private:
  network::Link link_{};
  double ns_per_byte_ = 0;
  double queue_bytes_ = 0;
  bool cut_ = false;
  double free_at_ = 0;  ///< when the last byte of what was taken has left the queue
  int64_t last_due_ = 0;
  double bytes_ = 0, dropped_ = 0, busy_ns_ = 0;
  Rng rng_{0};
};

}  // namespace syncopate::emulation
