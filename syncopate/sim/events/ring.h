#pragma once

#include "syncopate/sim/events/traffic.h"

namespace syncopate::sim {

/// An all-reduce as Gloo's ring makes it: an array in chunks, one for each rank, that travel in segments,
/// first summed on their way and then as sums. Each call is an event of one rank; when it is over the rank is
/// done.
class Ring {
 public:
  explicit Ring(Traffic& traffic) : traffic_(traffic) {}

  void begin(Operation& operation, int rank, double now);
  void credit(Operation& operation, int rank, double now);   ///< the rank before is ready for a segment
  void arrived(Operation& operation, int rank, double now);  ///< a segment of the rank behind
  void added(Operation& operation, int rank, double now);

 private:
  RingState& state(Operation& operation, int rank) { return operation.rings[traffic_.slot(operation, rank)]; }
  void turn(Operation& operation, int rank, double now);
  void send(Operation& operation, int rank, double now);

  Traffic& traffic_;
};

}  // namespace syncopate::sim
