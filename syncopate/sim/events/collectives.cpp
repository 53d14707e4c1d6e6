#include "syncopate/sim/events/collectives.h"

#include <utility>

#include "syncopate/sim/events/rounds.h"

namespace syncopate::sim {
namespace {

constexpr int kThreads = 2;  // that c10d's Gloo makes collectives in, on each rank

}  // namespace

Collectives::Collectives(Traffic& traffic, const Cores& cores)
    : traffic_(traffic),
      levels_(traffic, cores),
      ring_(traffic),
      pairs_(traffic),
      threads_busy_(traffic.wires.ranks()),
      waiting_(traffic.wires.ranks()) {}

int Collectives::add(Operation operation) {
  if (uses_levels_ && operation.is_collective()) return levels_.add(std::move(operation));
  return traffic_.add(std::move(operation));
}

/// When the first of its ends comes to it.
void Collectives::prepare(Operation& operation) const {
  if (!operation.done.empty()) return;
  const bool message = operation.kind == Operation::kMessage;
  const auto ends = message ? size_t{2} : traffic_.members(operation).size();
  operation.done.assign(ends, 0);
  operation.waiter.assign(ends, -1);
  if (message) {
    operation.pairs.assign(1, 0);
    operation.left.assign(ends, 1);
  } else if (!operation.pieces.empty()) {
    operation.here.assign(levels_.hosts(operation), 0);
  } else if (traffic_.size(operation) > kPlayedRanks) {
    operation.begun.assign(ends, 0);
  } else if (operation.kind == Operation::kAllReduce) {
    operation.rings.assign(ends, {});
  } else {
    operation.pairs.assign(ends * ends, 0);
    operation.left.assign(ends, 0);
  }
}

void Collectives::enter(Operation& operation, int rank, double now) {
  prepare(operation);
  if (!needs_thread(operation)) return begin(operation, rank, now);
  const auto place = static_cast<size_t>(rank);
  if (threads_busy_[place] == kThreads) {
    waiting_[place].push_back(operation.number);
  } else {
    ++threads_busy_[place];
    begin(operation, rank, now);
  }
}

void Collectives::begin(Operation& operation, int rank, double now) {
  if (operation.done.size() == 1) return traffic_.done(operation, rank, now);
  if (!operation.pieces.empty()) return levels_.begin(operation, rank, now);
  if (!operation.begun.empty()) return begin_in_rounds(traffic_, operation, rank, now);
  if (operation.kind == Operation::kAllReduce) return ring_.begin(operation, rank, now);
  pairs_.begin(operation, rank, now);
}

void Collectives::play(const Event& event) {
  Operation& operation = traffic_.operation(event.operation);
  const bool in_ring = operation.kind == Operation::kAllReduce;
  const int rank = event.rank;
  const double now = event.at;
  switch (event.kind) {
    case Event::kPost:
      return pairs_.post(operation, rank, event.peer, now);
    case Event::kCredit:
      return in_ring ? ring_.credit(operation, rank, now) : pairs_.credit(operation, rank, event.peer, now);
    case Event::kData:
      return in_ring ? ring_.arrived(operation, rank, now) : pairs_.arrived(operation, rank, now);
    case Event::kThread:
      return ring_.added(operation, rank, now);
    case Event::kDone:
      return done(operation, rank, now);
    case Event::kGathered:
      return enter(operation, rank, now);
    case Event::kResume:
    case Event::kWorked:
      return;  // the actors'
  }
}

void Collectives::done(Operation& operation, int rank, double now) {
  operation.done[traffic_.slot(operation, rank)] = 1;
  if (operation.whole >= 0) levels_.crossed(operation, rank, now);
  if (!needs_thread(operation)) return;
  const auto place = static_cast<size_t>(rank);
  if (waiting_[place].empty()) {
    --threads_busy_[place];
    return;
  }
  const int next = waiting_[place].front();
  waiting_[place].pop_front();
  begin(traffic_.operation(next), rank, now);
}

}  // namespace syncopate::sim
