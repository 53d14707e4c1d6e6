#include "syncopate/sim/events/rounds.h"

#include <algorithm>
#include <utility>

namespace syncopate::sim {
namespace {

/// Without an event: a way that is used for so many bytes.
Wire& carry(Traffic& traffic, const Operation& operation, int from, int to, double bytes) {
  Wire& way = traffic.wires.between(from, to);
  way.bytes += bytes;
  way.busy += bytes / way.rate;
  traffic.count_sent(operation, from, bytes);
  return way;
}

/// When each member has the sum.
std::vector<double> ends_of_ring(Traffic& traffic, const Operation& operation) {
  const size_t ranks = operation.begun.size();
  const auto member = [&](size_t place) { return traffic.member(operation, static_cast<int>(place)); };
  // Two segments of a chunk are on their way at a time, each after a round trip.
  const double chunk = operation.bytes / static_cast<double>(ranks);
  const double segment = std::min(chunk / 2, static_cast<double>(kLargestSegment));
  const double adding = chunk / bytes_per_s(traffic.costs.reduce_gbyte);
  std::vector<double> round(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    const int from = member(rank + 1);
    const double bytes = 2 * chunk * static_cast<double>(ranks - 1);
    const Wire& way = carry(traffic, operation, from, member(rank), bytes);
    const double trip = 2 * (way.latency + traffic.wires.hop_s());
    round[rank] = chunk / (2 * segment) * std::max(trip + segment / way.rate, 2 * segment / way.rate);
  }
  std::vector<double> when = operation.begun, next(ranks);
  for (size_t turn = 0; turn < 2 * (ranks - 1); ++turn) {
    const double extra = turn < ranks - 1 ? adding : 0;
    for (size_t rank = 0; rank + 1 < ranks; ++rank)
      next[rank] = std::max(when[rank], when[rank + 1]) + round[rank] + extra;
    next[ranks - 1] = std::max(when[ranks - 1], when[0]) + round[ranks - 1] + extra;
    when.swap(next);
  }
  traffic.queue.count(static_cast<int64_t>(2 * (ranks - 1) * ranks));
  return when;
}

/// When each member has sent and got its messages.
std::vector<double> ends_of_pairs(Traffic& traffic, const Operation& operation) {
  const std::vector<double>& when = operation.begun;
  const size_t ranks = when.size();
  std::vector<double> ends = when;
  const auto move = [&](size_t from, size_t to) {
    const int sender = traffic.member(operation, static_cast<int>(from));
    const int receiver = traffic.member(operation, static_cast<int>(to));
    const double bytes = traffic.bytes(operation, sender, receiver);
    if (bytes <= 0) return;
    Wire& way = carry(traffic, operation, sender, receiver, bytes);
    const double hop = way.latency + traffic.wires.hop_s();
    if (std::exchange(way.round, operation.number) != operation.number) way.until = 0;
    way.until = std::max(way.until, std::max(when[to] + hop, when[from])) + bytes / way.rate;
    ends[to] = std::max(ends[to], way.until + hop);
    ends[from] = std::max(ends[from], way.until);
    traffic.queue.count(1);
  };
  const auto root = static_cast<size_t>(operation.root);
  for (size_t a = 0; a < ranks; ++a) {
    if (operation.kind == Operation::kExchange) {
      for (size_t step = 1; step < ranks; ++step) move(a, (a + step) % ranks);
    } else if (a != root) {
      operation.kind == Operation::kGather ? move(a, root) : move(root, a);
    }
  }
  return ends;
}

}  // namespace

void begin_in_rounds(Traffic& traffic, Operation& operation, int rank, double now) {
  operation.begun[traffic.slot(operation, rank)] = now;
  if (++operation.begun_count < traffic.size(operation)) return;
  const std::vector<double> ends = operation.kind == Operation::kAllReduce
                                       ? ends_of_ring(traffic, operation)
                                       : ends_of_pairs(traffic, operation);
  for (size_t place = 0; place < ends.size(); ++place)
    traffic.done(operation, traffic.member(operation, static_cast<int>(place)), ends[place]);
}

}  // namespace syncopate::sim
