#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "syncopate/sim/events/queue.h"

namespace syncopate::sim {

/// The cores of a machine that all ranks share, for messages and for computing. At first every rank has its
/// own machine, and nothing waits.
class Cores {
 public:
  Cores(Queue& queue, int workers) : queue_(queue), workers_(workers) {}

  /// See Engine::share_machine and Engine::share_cores.
  void share_messages(int64_t cores, double message_s, double slice_s);
  void share_work(int64_t cores) { shared_ = static_cast<double>(cores); }

  /// If the event wakes a thread, postpones it until a core is free for that thread, once. Returns whether it
  /// did.
  bool put_off(Event& event);
  /// How many workers share one core's part of the memory bandwidth.
  double crowd() const;

  /// An actor begins to compute, which takes so many seconds on a core of its own. False if it has one; true
  /// if cores are shared, and then an event kWorked tells when it has finished.
  bool begin(int actor, double seconds, double now);
  void end() { --computing_; }
  /// The actors that have finished at an event kWorked of this version.
  std::vector<int> through(int version, double now);

 private:
  struct Work {
    int actor;
    double left;  ///< seconds of a core
  };
  double turn(const Event& event);
  double pace() const { return std::min(1.0, shared_ / static_cast<double>(work_.size())); }
  void reckon(double now);
  void expect_next(double now);

  Queue& queue_;
  int workers_;
  size_t computing_ = 0;  ///< actors
  // Messages:
  std::vector<double> free_{};  ///< by core: until when it deals with messages
  double message_s_ = 0, slice_s_ = 0;
  // Work:
  double shared_ = 0;  ///< 0: everybody has a core
  std::vector<Work> work_{};
  double reckoned_ = 0;  ///< what is left of work is known for this time
  int version_ = 0;      ///< of the event that counts; others are out of date
};

}  // namespace syncopate::sim
