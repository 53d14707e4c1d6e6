#include "syncopate/sim/events/actors.h"

#include <algorithm>
#include <utility>

namespace syncopate::sim {

Actors::Actors(Traffic& traffic, Cores& cores, Collectives& collectives)
    : traffic_(traffic), cores_(cores), collectives_(collectives), first_of_(traffic.wires.ranks(), -1) {}

int Actors::add(int rank) {
  actors_.push_back({.rank = rank});
  const int number = static_cast<int>(actors_.size()) - 1;
  int& first = first_of_[static_cast<size_t>(rank)];
  if (first < 0) first = number;
  return number;
}

void Actors::start() {
  for (size_t actor = 0; actor < actors_.size(); ++actor) wake(static_cast<int>(actor), 0);
}

bool Actors::all_through() const {
  return std::all_of(actors_.begin(), actors_.end(),
                     [](const Actor& actor) { return actor.next == actor.script.size(); });
}

void Actors::settle(Actor& actor, double now) {
  if (actor.under_way > 0 && actor.blocked_since < 0) actor.sums.hidden += now - actor.last_change;
  actor.last_change = now;
}

void Actors::ended(const Operation& operation, int rank, double now) {
  Actor& actor = actors_[static_cast<size_t>(first(rank))];
  settle(actor, now);
  actor.under_way = std::max(0, actor.under_way - 1);
  const int waiter = operation.waiter[traffic_.slot(operation, rank)];
  if (waiter >= 0) wake(waiter, now);
}

void Actors::resume(int number, double now) {
  Actor& actor = actors_[static_cast<size_t>(number)];
  if (actor.computing) {
    actor.computing = false;
    cores_.end();
  }
  if (actor.blocked_since >= 0) {
    settle(actor, now);
    actor.sums.exchange += now - actor.blocked_since;
    actor.blocked_since = -1;
  }
  while (actor.next < actor.script.size()) {
    const Action& action = actor.script[actor.next];
    ++actor.next;
    if (!act(number, action, now)) return;
  }
}

/// False: the actor goes on later.
bool Actors::act(int number, const Action& action, double now) {
  Actor& actor = actors_[static_cast<size_t>(number)];
  switch (action.kind) {
    case Action::Kind::kCompute:
      return compute(number, action, now);
    case Action::Kind::kStart:
      settle(actor, now);
      ++actor.under_way;
      collectives_.enter(traffic_.operation(action.operation), actor.rank, now);
      return true;
    case Action::Kind::kWait:
      return wait(number, traffic_.operation(action.operation), now);
    case Action::Kind::kLock: {
      Lock& lock = locks_[action.operation];
      if (!std::exchange(lock.held, true)) return true;
      lock.waiting.push_back(number);
      return false;
    }
    case Action::Kind::kUnlock: {
      Lock& lock = locks_[action.operation];
      lock.held = !lock.waiting.empty();
      if (lock.held) {
        wake(lock.waiting.front(), now);
        lock.waiting.pop_front();
      }
      return true;
    }
    case Action::Kind::kMeet: {
      std::vector<int>& there = meetings_[action.operation];
      there.push_back(number);
      if (static_cast<int>(there.size()) < action.actors) return false;
      there.pop_back();
      for (const int other : std::exchange(there, {})) wake(other, now);
      return true;
    }
    case Action::Kind::kMark:
      settle(actor, now);
      actor.marks.push_back(actor.sums);
      actor.marks.back().at = now;
      actor.marks.back().sent = traffic_.sent[static_cast<size_t>(actor.rank)];
      return true;
  }
  return true;
}

bool Actors::compute(int number, const Action& action, double now) {
  if (action.seconds <= 0) return true;
  Actor& actor = actors_[static_cast<size_t>(number)];
  (action.account == Account::kCompute    ? actor.sums.compute
   : action.account == Account::kExchange ? actor.sums.exchange
                                          : actor.sums.data) += action.seconds;
  if (action.account != Account::kData && !action.asleep) {
    actor.computing = true;
    if (cores_.begin(number, action.seconds, now)) return false;
  }
  wake(number, now + action.seconds);
  return false;
}

bool Actors::wait(int number, Operation& operation, double now) {
  Actor& actor = actors_[static_cast<size_t>(number)];
  const size_t mine = traffic_.slot(operation, actor.rank);
  if (operation.done[mine] != 0) return true;
  settle(actor, now);
  operation.waiter[mine] = number;
  actor.blocked_since = now;
  return false;
}

}  // namespace syncopate::sim
