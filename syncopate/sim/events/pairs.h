#pragma once

#include "syncopate/sim/events/traffic.h"

namespace syncopate::sim {

/// Operations that are messages between two: gather, scatter, exchange, or one message. Data leave when they
/// are posted and the receiver has said that it is ready. Each call is an event of one rank; after its last
/// message the rank is done.
class Pairs {
 public:
  explicit Pairs(Traffic& traffic) : traffic_(traffic) {}

  void begin(Operation& operation, int rank, double now);
  void post(Operation& operation, int from, int to, double now);
  void credit(Operation& operation, int from, int to, double now);
  void arrived(Operation& operation, int rank, double now);

 private:
  void begin_at_root(Operation& operation, int rank, double now);
  void begin_exchange(Operation& operation, int rank, double now);
  void transfer(Operation& operation, int from, int to, double now);
  uint8_t& state(Operation& operation, int from, int to) const;

  Traffic& traffic_;
};

}  // namespace syncopate::sim
