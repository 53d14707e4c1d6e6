#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "syncopate/network/topology.h"
#include "syncopate/sim/events/action.h"
#include "syncopate/sim/events/actors.h"
#include "syncopate/sim/events/collectives.h"
#include "syncopate/sim/events/cores.h"
#include "syncopate/sim/events/traffic.h"
#include "syncopate/sim/profile.h"

namespace syncopate::sim {

/// Ranks that compute, send and wait, played out event by event. Messages go as Gloo's TCP transport sends
/// them: data leave when the receiver has said that it is ready, so a message to somebody far away costs a
/// round trip; what goes between two hosts goes in the order in which it was written.
class Engine {
 public:
  /// Ranks from 0: `workers`, which take part in collectives, and servers behind them. The topology must
  /// outlive the engine.
  Engine(const network::Topology& topology, std::vector<int> seats, int workers, const LocalCosts& costs);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// All ranks share one machine of so many cores. To deal with a message takes a core `message_s`, one after
  /// the other where there are more messages than cores; while as many actors compute, whoever is woken first
  /// waits for a turn of the scheduler's, `slice_s`.
  void share_machine(int64_t cores, double message_s, double slice_s) {
    cores_.share_messages(cores, message_s, slice_s);
  }
  /// Those who compute at the same time share the machine's cores, so many, instead of having one each: for
  /// ranks that compute in turns.
  void share_cores(int64_t cores) { cores_.share_work(cores); }
  /// Collectives of ranks of which some share a host go in two levels, as comm/two_level's do: through memory
  /// to the first rank of each host, among those as Gloo does, and back through memory. Holds for operations
  /// that are made from here on.
  void use_levels() { collectives_.use_levels(); }

  /// Workers that have operations of their own; group 0 is all of them.
  int group(std::vector<int> ranks) { return traffic_.groups.add(std::move(ranks)); }

  // Operations, known by their numbers. Those of a group must be started by all of it, in one order.
  int all_reduce(double bytes, int element_bytes, int group = 0);
  int gather(double bytes, int root, int group = 0);  ///< `root`: its place in the group
  int scatter(double bytes, int root, int group = 0);
  /// Everybody to everybody: a message to each owner of a part (`to_owners`), or from it. The sends begin
  /// `gap_s` after each other: each is packed first.
  int exchange(std::vector<double> part_bytes, bool to_owners, double gap_s, int group = 0);
  /// Of two: each end starts it and may wait for its own.
  int message(int from, int to, double bytes);

  /// A thread on a rank with its own list of actions.
  int actor(int rank) { return actors_.add(rank); }
  std::vector<Action>& script(int actor) { return actors_.script(actor); }

  /// Until all actors are through; once.
  void play();

  using Mark = sim::Mark;
  const std::vector<Mark>& marks(int actor) const { return actors_.marks(actor); }
  int first_actor(int rank) const { return actors_.first(rank); }

  using WireUse = sim::WireUse;
  std::vector<WireUse> wires() const { return traffic_.wires.uses(); }  ///< between different hosts
  int64_t events() const { return traffic_.queue.played(); }

 private:
  Traffic traffic_;
  Cores cores_;
  Collectives collectives_;
  Actors actors_;
};

}  // namespace syncopate::sim
