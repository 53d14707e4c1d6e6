#pragma once

#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "syncopate/sim/events/cores.h"
#include "syncopate/sim/events/traffic.h"

namespace syncopate::sim {

/// Collectives in two levels, as comm/two_level makes them: up through memory to the first rank of each host
/// (the leader), piece by piece among the leaders, and down through memory. A piece is an operation of its
/// own, which begins with an event kGathered.
class Levels {
 public:
  Levels(Traffic& traffic, const Cores& cores) : traffic_(traffic), cores_(cores) {}

  /// Adds an operation, and where its ranks share hosts the leaders' operations that it consists of.
  int add(Operation operation);
  /// How many hosts an operation in two levels has.
  size_t hosts(const Operation& operation) const { return layouts_.at(operation.group).hosts.size(); }
  /// A rank reaches an operation. Once all ranks of its host have, their tensors go up to the leader.
  void begin(Operation& operation, int rank, double now);
  /// A leader has the result of a piece. It goes down to the ranks of its host, after the pieces before it.
  void crossed(const Operation& piece, int leader, double now);

 private:
  /// A group's ranks, by host.
  struct Layout {
    int leaders = -1;                     ///< the group of each host's first
    std::vector<std::vector<int>> hosts;  ///< their ranks
    std::vector<int> host;                ///< of a place in the group
  };
  /// How far a leader is with the operations of its host.
  struct Lanes {
    double up = 0, down = 0;                     ///< until when memory is at work, either way
    std::deque<std::pair<int, bool>> falling{};  ///< pieces in their order; whether they have crossed
  };
  const Layout& layout(int group);
  double nominal_bytes(const Operation& operation, int rank) const;
  double copying_s(double bytes, int host) const;
  double seconds_up(const Operation& piece, const Layout& layout, int number) const;
  double seconds_down(const Operation& piece, const Layout& layout, int number) const;

  Traffic& traffic_;
  const Cores& cores_;
  std::unordered_map<int, Layout> layouts_{};  ///< by group
  std::unordered_map<int, Lanes> lanes_{};     ///< by leader
};

}  // namespace syncopate::sim
