#pragma once

#include <deque>
#include <vector>

#include "syncopate/sim/events/levels.h"
#include "syncopate/sim/events/pairs.h"
#include "syncopate/sim/events/ring.h"
#include "syncopate/sim/events/traffic.h"

namespace syncopate::sim {

/// Operations from their start to their end on each rank: the threads that c10d's Gloo makes them in, and the
/// protocol that each of them goes by.
class Collectives {
 public:
  Collectives(Traffic& traffic, const Cores& cores);

  void use_levels() { uses_levels_ = true; }
  int add(Operation operation);

  /// A rank comes to an operation, and waits for a thread where those it has are at work.
  void enter(Operation& operation, int rank, double now);
  /// All events that have an operation and a rank.
  void play(const Event& event);

 private:
  void prepare(Operation& operation) const;
  void begin(Operation& operation, int rank, double now);
  void done(Operation& operation, int rank, double now);
  static bool needs_thread(const Operation& operation) {
    return operation.is_collective() && operation.pieces.empty();
  }

  Traffic& traffic_;
  Levels levels_;
  Ring ring_;
  Pairs pairs_;
  bool uses_levels_ = false;
  std::vector<int> threads_busy_;           ///< by rank
  std::vector<std::deque<int>> waiting_{};  ///< operations, by rank
};

}  // namespace syncopate::sim
