#include "syncopate/sim/engine.h"

#include <numeric>
#include <utility>

#include "syncopate/base/error.h"

namespace syncopate::sim {

Engine::Engine(const network::Topology& topology, std::vector<int> seats, int workers,
               const LocalCosts& costs)
    : traffic_(topology, std::move(seats), costs),
      cores_(traffic_.queue, workers),
      collectives_(traffic_, cores_),
      actors_(traffic_, cores_, collectives_) {
  check(workers >= 1 && static_cast<size_t>(workers) <= traffic_.wires.ranks(), "a seat for every rank");
  std::vector<int> all(static_cast<size_t>(workers));
  std::iota(all.begin(), all.end(), 0);
  group(std::move(all));
}

int Engine::all_reduce(double bytes, int element_bytes, int group) {
  return collectives_.add(
      {.kind = Operation::kAllReduce, .group = group, .bytes = bytes, .element = element_bytes});
}

int Engine::gather(double bytes, int root, int group) {
  return collectives_.add({.kind = Operation::kGather, .group = group, .bytes = bytes, .root = root});
}

int Engine::scatter(double bytes, int root, int group) {
  return collectives_.add({.kind = Operation::kScatter, .group = group, .bytes = bytes, .root = root});
}

int Engine::exchange(std::vector<double> part_bytes, bool to_owners, double gap_s, int group) {
  check(part_bytes.size() == traffic_.groups.members(group).size(), "a part for every member");
  return collectives_.add({.kind = Operation::kExchange,
                           .group = group,
                           .to_owners = to_owners,
                           .gap_s = gap_s,
                           .parts = std::move(part_bytes)});
}

int Engine::message(int from, int to, double bytes) {
  return collectives_.add({.kind = Operation::kMessage, .bytes = bytes, .from = from, .to = to});
}

void Engine::play() {
  actors_.start();
  while (!traffic_.queue.empty()) {
    Event event = traffic_.queue.next();
    if (cores_.put_off(event)) continue;
    switch (event.kind) {
      case Event::kResume:
        actors_.resume(event.rank, event.at);
        break;
      case Event::kWorked:
        for (const int actor : cores_.through(event.operation, event.at)) actors_.resume(actor, event.at);
        break;
      case Event::kDone: {
        const Operation& operation = traffic_.operation(event.operation);
        // Nobody waits for a piece but the leaders' memory.
        if (operation.whole < 0) actors_.ended(operation, event.rank, event.at);
        collectives_.play(event);
        break;
      }
      default:
        collectives_.play(event);
    }
  }
  check(actors_.all_through(), "an actor waits for ever");
}

}  // namespace syncopate::sim
