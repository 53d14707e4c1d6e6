#include "syncopate/sim/events/pairs.h"

namespace syncopate::sim {
namespace {

constexpr uint8_t kPosted = 1, kCredit = 2;

}  // namespace

void Pairs::begin(Operation& operation, int rank, double now) {
  switch (operation.kind) {
    case Operation::kExchange:
      return begin_exchange(operation, rank, now);
    case Operation::kMessage:
      return rank == operation.from ? post(operation, rank, operation.to, now)
                                    : traffic_.expect(operation, rank, operation.from, now);
    default:
      return begin_at_root(operation, rank, now);
  }
}

/// Gather and scatter: the root deals with everybody, the others with the root.
void Pairs::begin_at_root(Operation& operation, int rank, double now) {
  const int count = traffic_.size(operation), mine = traffic_.place(operation, rank);
  const bool root = mine == operation.root, sends = root == (operation.kind == Operation::kScatter);
  operation.left[static_cast<size_t>(mine)] = root ? count - 1 : 1;
  for (int place = 0; place < count; ++place) {
    if (place == mine || (!root && place != operation.root)) continue;
    const int peer = traffic_.member(operation, place);
    sends ? post(operation, rank, peer, now) : traffic_.expect(operation, rank, peer, now);
  }
}

void Pairs::begin_exchange(Operation& operation, int rank, double now) {
  const int count = traffic_.size(operation), mine = traffic_.place(operation, rank);
  int& left = operation.left[static_cast<size_t>(mine)];
  // Receives stand before anything is sent.
  int sends = 0;
  for (int step = 1; step < count; ++step) {
    const int from = traffic_.member(operation, mine - step);
    if (traffic_.bytes(operation, from, rank) <= 0) continue;
    ++left;
    traffic_.expect(operation, rank, from, now);
  }
  for (int step = 1; step < count; ++step) {
    const int to = traffic_.member(operation, mine + step);
    if (traffic_.bytes(operation, rank, to) <= 0) continue;
    ++left;
    traffic_.queue.at(now + ++sends * operation.gap_s, Event::kPost, operation.number, rank, to);
  }
  if (left == 0) traffic_.done(operation, rank, now);
}

void Pairs::post(Operation& operation, int from, int to, double now) {
  uint8_t& pair = state(operation, from, to);
  pair |= kPosted;
  if ((pair & kCredit) != 0) return transfer(operation, from, to, now);
  traffic_.wires.write(from, to, kPreamble, now);  // says that it wants to send
}

void Pairs::credit(Operation& operation, int from, int to, double now) {
  uint8_t& pair = state(operation, from, to);
  pair |= kCredit;
  if ((pair & kPosted) != 0) transfer(operation, from, to, now);
}

void Pairs::transfer(Operation& operation, int from, int to, double now) {
  const double bytes = traffic_.bytes(operation, from, to);
  traffic_.count_sent(operation, from, bytes);
  const double there = traffic_.wires.write(from, to, kPreamble + bytes, now);
  traffic_.queue.at(there, Event::kData, operation.number, to, from);
  arrived(operation, from, now);  // for the sender it is done when it is written
}

/// A message is done at one end.
void Pairs::arrived(Operation& operation, int rank, double now) {
  const size_t mine = traffic_.slot(operation, rank);
  if (--operation.left[mine] > 0) return;
  double after = now;
  // c10d gathers into one array and copies it out.
  if (operation.kind == Operation::kGather && traffic_.place(operation, rank) == operation.root &&
      operation.whole < 0)
    after += operation.bytes * traffic_.size(operation) / bytes_per_s(traffic_.costs.copy_gbyte);
  traffic_.done(operation, rank, after);
}

uint8_t& Pairs::state(Operation& operation, int from, int to) const {
  if (operation.kind == Operation::kMessage) return operation.pairs.front();
  const auto place = [&](int rank) { return traffic_.slot(operation, rank); };
  return operation.pairs[place(from) * traffic_.members(operation).size() + place(to)];
}

}  // namespace syncopate::sim
