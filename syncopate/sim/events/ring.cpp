#include "syncopate/sim/events/ring.h"

#include <algorithm>

namespace syncopate::sim {
namespace {

struct Segments {
  int64_t size, count, each;
};

Segments segments_of(const Operation& operation, int size_of_group) {
  const auto total = static_cast<int64_t>(operation.bytes);
  const auto ranks = static_cast<int64_t>(size_of_group), element = static_cast<int64_t>(operation.element);
  const auto up = [](int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; };
  const int64_t most = element * (kLargestSegment / element);
  const int64_t size = up(std::min((total + 2 * ranks - 1) / (2 * ranks), most), element);
  const int64_t count = up(std::max((total + size - 1) / size, 2 * ranks), ranks);
  return {size, count, count / ranks};
}

/// Of the segment that a rank sends to the one before it, or gets from the one behind it, in a turn.
double segment_bytes(const Operation& operation, const Segments& cut, int phase, int place, int64_t index,
                     bool sends) {
  const int64_t chunk = place + (phase == 0 ? 1 : 0) + (sends ? 0 : 1);
  const int64_t offset = (chunk * cut.each + index) % cut.count * cut.size;
  return std::max(0.0,
                  std::min(static_cast<double>(cut.size), operation.bytes - static_cast<double>(offset)));
}

}  // namespace

void Ring::begin(Operation& operation, int rank, double now) {
  state(operation, rank).begun = true;
  turn(operation, rank, now);
}

void Ring::credit(Operation& operation, int rank, double now) {
  ++state(operation, rank).credit;
  send(operation, rank, now);
  turn(operation, rank, now);
}

void Ring::arrived(Operation& operation, int rank, double now) {
  ++state(operation, rank).arrived;
  turn(operation, rank, now);
}

void Ring::added(Operation& operation, int rank, double now) {
  state(operation, rank).busy = false;
  turn(operation, rank, now);
}

/// Goes on until the rank must wait for something.
void Ring::turn(Operation& operation, int rank, double now) {
  RingState& ring = state(operation, rank);
  if (!ring.begun || ring.busy || ring.phase > 1) return;
  const Segments cut = segments_of(operation, traffic_.size(operation));
  const int mine = traffic_.place(operation, rank), behind = traffic_.member(operation, mine + 1);
  const int64_t turns = cut.count - cut.each;  // a rank sends every chunk but one in each phase
  for (;;) {
    if (ring.next == turns + 2) {
      ring.next = 0;
      if (++ring.phase > 1) return traffic_.done(operation, rank, now);
      continue;
    }
    const int64_t index = ring.next;
    if (index >= 2) {
      const double came = segment_bytes(operation, cut, ring.phase, mine, index - 2, false);
      const double went = segment_bytes(operation, cut, ring.phase, mine, index - 2, true);
      if (came > 0 && !ring.added) {
        if (ring.arrived == ring.received) return;
        ++ring.received;
        ring.added = true;
        const double adding = ring.phase == 0 ? came / bytes_per_s(traffic_.costs.reduce_gbyte) : 0;
        if (adding > 0) {
          ring.busy = true;
          return traffic_.queue.at(now + adding, Event::kThread, operation.number, rank);
        }
      }
      if (went > 0) {
        if (ring.sent == ring.finished) return;
        ++ring.finished;
      }
      ring.added = false;
    }
    if (index < turns) {
      if (segment_bytes(operation, cut, ring.phase, mine, index, false) > 0)
        traffic_.expect(operation, rank, behind, now);
      if (const double bytes = segment_bytes(operation, cut, ring.phase, mine, index, true); bytes > 0) {
        ring.unsent[ring.posted++ % 2] = bytes;
        send(operation, rank, now);
      }
    }
    ++ring.next;
  }
}

/// Sends what was posted and the one before is ready for.
void Ring::send(Operation& operation, int rank, double now) {
  RingState& ring = state(operation, rank);
  const int before = traffic_.member(operation, traffic_.place(operation, rank) - 1);
  while (ring.sent < ring.posted && ring.sent < ring.credit) {
    const double bytes = ring.unsent[ring.sent++ % 2];
    traffic_.count_sent(operation, rank, bytes);
    const double there = traffic_.wires.write(rank, before, kPreamble + bytes + kPreamble, now);
    traffic_.queue.at(there, Event::kData, operation.number, before, rank);
  }
}

}  // namespace syncopate::sim
