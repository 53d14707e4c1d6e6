#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "syncopate/sim/events/groups.h"
#include "syncopate/sim/events/operation.h"
#include "syncopate/sim/events/queue.h"
#include "syncopate/sim/events/wires.h"

namespace syncopate::sim {

constexpr double kPreamble = 48;              // bytes before every message of Gloo's, and all of a notice
constexpr int64_t kLargestSegment = 1 << 20;  // of Gloo's ring

/// All operations, and what their protocols share: wires, groups, the queue of events and the count of what
/// ranks have sent. An operation stays where it is from the first event on.
struct Traffic {
  Traffic(const network::Topology& topology, std::vector<int> seats, const LocalCosts& local)
      : wires(topology, std::move(seats), local), groups(wires.ranks()), costs(local), sent(wires.ranks()) {}

  int add(Operation operation) {
    operation.number = static_cast<int>(operations.size());
    operations.push_back(std::move(operation));
    return operations.back().number;
  }
  Operation& operation(int number) { return operations[static_cast<size_t>(number)]; }

  const std::vector<int>& members(const Operation& of) const { return groups.members(of.group); }
  int size(const Operation& of) const { return groups.size(of.group); }
  int place(const Operation& of, int rank) const { return groups.place(of.group, rank); }
  int member(const Operation& of, int place) const { return groups.member(of.group, place); }
  /// Where an operation keeps what is a rank's.
  size_t slot(const Operation& of, int rank) const {
    if (of.kind == Operation::kMessage) return rank == of.from ? 0 : 1;
    return static_cast<size_t>(place(of, rank));
  }
  /// Of the message from one rank to another; 0: there is none.
  double bytes(const Operation& of, int from, int to) const {
    if (of.parts.empty()) return of.bytes;
    const bool by_receiver = of.to_owners || of.kind == Operation::kScatter;
    return of.parts[static_cast<size_t>(place(of, by_receiver ? to : from))];
  }

  void done(const Operation& of, int rank, double when) { queue.at(when, Event::kDone, of.number, rank); }
  /// Tells another rank that this one is ready for what it sends.
  void expect(const Operation& of, int rank, int from, double now) {
    queue.at(wires.write(rank, from, kPreamble, now), Event::kCredit, of.number, from, rank);
  }
  /// In two levels what a rank sends is counted as Gloo would send it, as records count it.
  void count_sent(const Operation& of, int rank, double bytes) {
    if (of.whole < 0) sent[static_cast<size_t>(rank)] += bytes;
  }

  Queue queue{};
  Wires wires;
  Groups groups;
  LocalCosts costs;
  std::vector<Operation> operations{};
  std::vector<double> sent;  ///< bytes by each rank, protocol apart
};

}  // namespace syncopate::sim
