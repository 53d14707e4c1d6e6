#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "syncopate/sim/events/action.h"
#include "syncopate/sim/events/collectives.h"
#include "syncopate/sim/events/cores.h"
#include "syncopate/sim/events/traffic.h"

namespace syncopate::sim {

/// What an actor has done up to a mark.
struct Mark {
  double at = 0;
  double compute = 0, exchange = 0, data = 0;  ///< since the beginning
  double hidden = 0;                           ///< operations under way while the actor did not wait for any
  double sent = 0;                             ///< bytes by its rank, protocol apart
};

/// Threads on ranks, each with a list of actions: computes, waits, and keeps account of its time.
class Actors {
 public:
  Actors(Traffic& traffic, Cores& cores, Collectives& collectives);

  int add(int rank);
  std::vector<Action>& script(int actor) { return actors_[static_cast<size_t>(actor)].script; }
  const std::vector<Mark>& marks(int actor) const { return actors_[static_cast<size_t>(actor)].marks; }
  int first(int rank) const { return first_of_[static_cast<size_t>(rank)]; }

  /// All of them, at the time 0.
  void start();
  void resume(int actor, double now);
  /// An operation is over for a rank.
  void ended(const Operation& operation, int rank, double now);
  bool all_through() const;

 private:
  struct Actor {
    int rank = 0;
    size_t next = 0;
    std::vector<Action> script{};
    double blocked_since = -1;
    bool computing = false;
    int under_way = 0;  ///< operations it started that have not ended
    double last_change = 0;
    Mark sums{};
    std::vector<Mark> marks{};
  };
  struct Lock {
    bool held = false;
    std::deque<int> waiting{};
  };
  bool act(int number, const Action& action, double now);
  bool compute(int number, const Action& action, double now);
  bool wait(int number, Operation& operation, double now);
  static void settle(Actor& actor, double now);
  void wake(int actor, double now) { traffic_.queue.at(now, Event::kResume, -1, actor); }

  Traffic& traffic_;
  Cores& cores_;
  Collectives& collectives_;
  std::vector<Actor> actors_{};
  std::vector<int> first_of_;  ///< of a rank: its first; -1: none
  std::unordered_map<int, Lock> locks_{};
  std::unordered_map<int, std::vector<int>> meetings_{};
};

}  // namespace syncopate::sim
