#include "syncopate/sim/engine.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "syncopate/base/error.h"

namespace syncopate::sim {
namespace {

constexpr int kThreads = 2;              // that c10d's Gloo makes collectives in, on each rank
constexpr double kPreamble = 48;         // bytes before every message of Gloo's, and all of a notice
constexpr int64_t kSegment = 1 << 20;    // Gloo's largest
constexpr double kLevelPiece = 8 << 20;  // of an all-reduce in two levels
constexpr uint8_t kPosted = 1, kCredit = 2;
constexpr double kNoLimit = 1e15;  // bytes a second where a cost is not known

double or_no_limit(double gbyte) { return gbyte > 0 ? 1e9 * gbyte : kNoLimit; }

}  // namespace

Engine::Engine(const network::Topology& topology, std::vector<int> seats, int workers,
               const LocalCosts& costs)
    : topology_(topology),
      seats_(std::move(seats)),
      workers_(workers),
      costs_(costs),
      // An all-reduce of no size between two is four messages, one behind the other.
      hop_s_(costs.operation_s / 4),
      threads_busy_(seats_.size()),
      queued_(seats_.size()),
      sent_(seats_.size()),
      actor_of_(seats_.size(), -1) {
  check(workers_ >= 1 && static_cast<size_t>(workers_) <= seats_.size(), "a seat for every rank");
  std::vector<int> all(static_cast<size_t>(workers_));
  std::iota(all.begin(), all.end(), 0);
  group(std::move(all));
}

int Engine::group(std::vector<int> ranks) {
  std::vector<int> place(seats_.size(), -1);
  for (size_t k = 0; k < ranks.size(); ++k) place[static_cast<size_t>(ranks[k])] = static_cast<int>(k);
  groups_.push_back(std::move(ranks));
  places_.push_back(std::move(place));
  return static_cast<int>(groups_.size()) - 1;
}

int Engine::add(Operation operation) {
  operations_.push_back(std::move(operation));
  return static_cast<int>(operations_.size()) - 1;
}

int Engine::all_reduce(double bytes, int element_bytes, int group) {
  return in_levels({.kind = Kind::kAllReduce, .group = group, .bytes = bytes, .element = element_bytes});
}
int Engine::gather(double bytes, int root, int group) {
  return in_levels({.kind = Kind::kGather, .group = group, .bytes = bytes, .root = root});
}
int Engine::scatter(double bytes, int root, int group) {
  return in_levels({.kind = Kind::kScatter, .group = group, .bytes = bytes, .root = root});
}
int Engine::exchange(std::vector<double> part_bytes, bool to_owners, double gap_s, int group) {
  check(part_bytes.size() == groups_[static_cast<size_t>(group)].size(), "a part for every member");
  return add({.kind = Kind::kExchange,
              .group = group,
              .to_owners = to_owners,
              .gap_s = gap_s,
              .parts = std::move(part_bytes)});
}
int Engine::message(int from, int to, double bytes) {
  return add({.kind = Kind::kMessage, .bytes = bytes, .from = from, .to = to});
}

int Engine::actor(int rank) {
  actors_.push_back({.rank = rank});
  const int number = static_cast<int>(actors_.size()) - 1;
  if (actor_of_[static_cast<size_t>(rank)] < 0) actor_of_[static_cast<size_t>(rank)] = number;
  return number;
}

void Engine::at(double time, What what, int operation, int rank, int peer) {
  events_.push({time, numbered_++, what, operation, rank, peer});
}

Engine::Wire& Engine::wire(int from, int to) {
  const int a = seats_[static_cast<size_t>(from)], b = seats_[static_cast<size_t>(to)];
  // Between processes of one host memory is no bottleneck that pairs share; a link is.
  const bool inside = a == b;
  constexpr size_t kFewHosts = 2048;
  const size_t hosts = topology_.hosts().size();
  if (wire_between_.empty() && hosts <= kFewHosts) wire_between_.assign(hosts * hosts, -1);
  int* const place = inside || hosts > kFewHosts
                         ? nullptr
                         : &wire_between_[static_cast<size_t>(a) * hosts + static_cast<size_t>(b)];
  if (place != nullptr && *place >= 0) return wires_[static_cast<size_t>(*place)];
  const auto key = (static_cast<uint64_t>(inside ? from : a) << 32) | (inside ? 1u << 31 : 0u) |
                   static_cast<uint32_t>(inside ? to : b);
  if (place == nullptr) {
    const auto found = wire_of_.find(key);
    if (found != wire_of_.end()) return wires_[found->second];
  }
  const network::Link& link = topology_.link(a, b);
  const double rate = std::min(link.gbit * 1e9 / 8 * (inside ? 1 : network::kPayloadShare),
                               or_no_limit(costs_.loopback_gbyte));
  if (place == nullptr) {
    wire_of_[key] = wires_.size();
  } else {
    *place = static_cast<int>(wires_.size());
  }
  wires_.push_back({.from = a, .to = b, .rate = rate, .latency = link.latency_ms / 1e3});
  return wires_.back();
}

/// What is left of a link's rate, with what it carries from `start` on. Acknowledgements wait behind what
/// goes the other way, so hosts that send to each other for long do not fill their link, the less the farther
/// they are.
double Engine::fullness(Wire& way, const Wire& back, double start, double bytes) {
  if (way.from == way.to) return 1;
  const double trip = way.latency + back.latency;
  if (start - way.free > trip) way.stretch = 0;
  way.stretch += bytes;
  constexpr double kNearby = 0.02;  // there a window is soon what it was before a loss
  if (trip < kNearby) return 1;
  // Where a loss comes first: the window begins with what a round trip holds, and the queue holds as much, or
  // some tens of milliseconds.
  constexpr double kTrips = 3, kQueue = 0.04;
  const auto is_long = [&](const Wire& wire) {
    return wire.stretch > kTrips * std::max(trip, kQueue) * wire.rate;
  };
  if (!is_long(way) || !is_long(back) || start - back.free > trip) return 1;
  // iperf3 both ways at once in the lab, cubic, 5 to 100 Mbit/s: 0.85 at 50 ms there and back, 0.66 to 0.74
  // at 344.
  constexpr double kNear = 0.875, kLost = 0.62, kLeast = 0.5;
  return std::max(kLeast, kNear - kLost * trip);
}

/// Puts bytes on the way; when they are there and noticed.
double Engine::write(int from, int to, double bytes, double now) {
  Wire& way = wire(from, to);
  const double start = std::max(now, way.free);
  const double seconds = bytes / (way.rate * fullness(way, wire(to, from), start, bytes));
  way.free = start + seconds;
  way.bytes += bytes;
  way.busy += seconds;
  return way.free + way.latency + hop_s_;
}

std::vector<Engine::WireUse> Engine::wires() const {
  std::vector<WireUse> uses;
  for (const Wire& way : wires_) {
    if (way.from != way.to && way.bytes > 0) uses.push_back({way.from, way.to, way.bytes, way.busy});
  }
  return uses;
}

void Engine::share_machine(int64_t cores, double message_s, double slice_s) {
  cores_.assign(static_cast<size_t>(std::max<int64_t>(0, cores)), 0);
  message_s_ = message_s;
  slice_s_ = slice_s;
}

/// When whoever the event wakes has done with it.
double Engine::turn_on_a_core(const Event& event) {
  const double from = event.at + (computing_ >= cores_.size() ? slice_s_ : 0);
  // Wakes a thread that has nothing to copy.
  if (event.what == What::kDone || event.what == What::kGathered) return from;
  double& core = *std::min_element(cores_.begin(), cores_.end());
  core = std::max(core, from) + message_s_;
  return core;
}

void Engine::play() {
  for (size_t actor = 0; actor < actors_.size(); ++actor) at(0, What::kResume, -1, static_cast<int>(actor));
  while (!events_.empty()) {
    Event event = events_.top();
    events_.pop();
    ++events_done_;
    const bool wakes = event.what == What::kCredit || event.what == What::kData ||
                       event.what == What::kDone || event.what == What::kGathered;
    if (wakes && !event.waited && !cores_.empty()) {
      event.waited = true;
      event.at = turn_on_a_core(event);
      events_.push(event);
      continue;
    }
    const int op = event.operation;
    switch (event.what) {
      case What::kResume:
        resume(event.rank, event.at);
        break;
      case What::kPost:
        post(op, event.rank, event.peer, event.at);
        break;
      case What::kCredit:
        if (operations_[static_cast<size_t>(op)].kind == Kind::kAllReduce) {
          ++ring(operations_[static_cast<size_t>(op)], event.rank).credit;
          send_ring(op, event.rank, event.at);
          turn(op, event.rank, event.at);
        } else {
          ready(op, event.rank, event.peer, event.at);
        }
        break;
      case What::kData:
        if (operations_[static_cast<size_t>(op)].kind == Kind::kAllReduce) {
          ++ring(operations_[static_cast<size_t>(op)], event.rank).arrived;
          turn(op, event.rank, event.at);
        } else {
          arrived(op, event.rank, event.at);
        }
        break;
      case What::kThread:
        ring(operations_[static_cast<size_t>(op)], event.rank).busy = false;
        turn(op, event.rank, event.at);
        break;
      case What::kDone:
        done(op, event.rank, event.at);
        break;
      case What::kWorked:
        worked(op, event.at);
        break;
      case What::kGathered:
        enter(op, event.rank, event.at);
        break;
    }
  }
  for (const Actor& actor : actors_) check(actor.next == actor.script.size(), "an actor waits for ever");
}

// --- Cores that are shared ---------------------------------------------------------------------------------

double Engine::pace() const { return std::min(1.0, shared_cores_ / static_cast<double>(work_.size())); }

void Engine::reckon(double now) {
  for (Work& each : work_) each.left -= (now - reckoned_) * pace();
  reckoned_ = now;
}

void Engine::expect_next(double now) {
  ++next_worked_;
  if (work_.empty()) return;
  const auto next = std::min_element(work_.begin(), work_.end(),
                                     [](const Work& a, const Work& b) { return a.left < b.left; });
  at(now + std::max(0.0, next->left) / pace(), What::kWorked, next_worked_, -1);
}

void Engine::worked(int version, double now) {
  if (version != next_worked_) return;
  reckon(now);
  constexpr double kNothing = 1e-12;
  std::vector<int> through;
  for (const Work& each : work_) {
    if (each.left <= kNothing) through.push_back(each.actor);
  }
  std::erase_if(work_, [](const Work& each) { return each.left <= kNothing; });
  expect_next(now);
  for (const int actor : through) resume(actor, now);
}

void Engine::settle(Actor& actor, double now) {
  if (actor.under_way > 0 && actor.blocked_since < 0) actor.sums.hidden += now - actor.last_change;
  actor.last_change = now;
}

void Engine::resume(int number, double now) {
  Actor& actor = actors_[static_cast<size_t>(number)];
  if (actor.computing) {
    actor.computing = false;
    --computing_;
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
bool Engine::act(int number, const Action& action, double now) {
  Actor& actor = actors_[static_cast<size_t>(number)];
  switch (action.kind) {
    case Action::Kind::kCompute:
      if (action.seconds <= 0) return true;
      (action.account == Account::kCompute    ? actor.sums.compute
       : action.account == Account::kExchange ? actor.sums.exchange
                                              : actor.sums.data) += action.seconds;
      if (action.account != Account::kData && !action.asleep) {
        actor.computing = true;
        ++computing_;
        if (shared_cores_ > 0) {
          reckon(now);
          work_.push_back({number, action.seconds});
          expect_next(now);
          return false;
        }
      }
      at(now + action.seconds, What::kResume, -1, number);
      return false;
    case Action::Kind::kStart:
      start(action.operation, number, now);
      return true;
    case Action::Kind::kWait: {
      Operation& operation = operations_[static_cast<size_t>(action.operation)];
      const size_t mine = slot(operation, actor.rank);
      if (operation.done[mine] != 0) return true;
      settle(actor, now);
      operation.waiter[mine] = number;
      actor.blocked_since = now;
      return false;
    }
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
        at(now, What::kResume, -1, lock.waiting.front());
        lock.waiting.pop_front();
      }
      return true;
    }
    case Action::Kind::kMeet: {
      std::vector<int>& there = meetings_[action.operation];
      there.push_back(number);
      if (static_cast<int>(there.size()) < action.actors) return false;
      there.pop_back();
      for (const int other : std::exchange(there, {})) at(now, What::kResume, -1, other);
      return true;
    }
    case Action::Kind::kMark:
      settle(actor, now);
      actor.marks.push_back(actor.sums);
      actor.marks.back().at = now;
      actor.marks.back().sent = sent_[static_cast<size_t>(actor.rank)];
      return true;
  }
  return true;
}

size_t Engine::slot(const Operation& operation, int rank) const {
  if (operation.kind == Kind::kMessage) return rank == operation.from ? 0 : 1;
  return static_cast<size_t>(place(operation, rank));
}

/// When the first of its ends comes to it.
void Engine::prepare(Operation& operation) const {
  if (!operation.done.empty()) return;
  const auto ends = operation.kind == Kind::kMessage ? size_t{2} : members(operation).size();
  operation.done.assign(ends, 0);
  operation.waiter.assign(ends, -1);
  if (operation.kind == Kind::kMessage) {
    operation.pairs.assign(1, 0);
    operation.left = {0, 1};
  } else if (!operation.pieces.empty()) {
    operation.here.assign(levels_.at(operation.group).hosts.size(), 0);
  } else if (size(operation) > kPlayedRanks) {
    operation.begun.assign(ends, 0);
  } else if (operation.kind == Kind::kAllReduce) {
    operation.rings.assign(ends, {});
  } else {
    operation.pairs.assign(ends * ends, 0);
    operation.left.assign(ends, 0);
  }
}

void Engine::start(int number, int by, double now) {
  Actor& actor = actors_[static_cast<size_t>(by)];
  settle(actor, now);
  ++actor.under_way;
  enter(number, actor.rank, now);
}

void Engine::enter(int number, int rank, double now) {
  Operation& operation = operations_[static_cast<size_t>(number)];
  prepare(operation);
  if (!pooled(operation)) return begin(number, rank, now);
  const auto place = static_cast<size_t>(rank);
  if (threads_busy_[place] == kThreads) {
    queued_[place].push_back(number);
  } else {
    ++threads_busy_[place];
    begin(number, rank, now);
  }
}

void Engine::begin(int number, int rank, double now) {
  Operation& operation = operations_[static_cast<size_t>(number)];
  const bool among_all = operation.kind != Kind::kMessage;
  const int count = among_all ? size(operation) : 2, mine = among_all ? place(operation, rank) : 0;
  if (count == 1) return at(now, What::kDone, number, rank);
  if (!operation.pieces.empty()) return climb(number, rank, now);
  if (!operation.begun.empty()) {
    operation.begun[static_cast<size_t>(mine)] = now;
    if (++operation.begun_count == count) finish_in_rounds(number);
    return;
  }
  const auto expect = [&](int from) {
    at(write(rank, from, kPreamble, now), What::kCredit, number, from, rank);
  };
  switch (operation.kind) {
    case Kind::kAllReduce:
      ring(operation, rank).begun = true;
      turn(number, rank, now);
      return;
    case Kind::kGather:
    case Kind::kScatter: {
      const bool root = mine == operation.root, sends = root == (operation.kind == Kind::kScatter);
      operation.left[static_cast<size_t>(mine)] = root ? count - 1 : 1;
      for (int peer = 0; peer < count; ++peer) {
        if (peer == mine || (!root && peer != operation.root)) continue;
        sends ? post(number, rank, member(operation, peer), now) : expect(member(operation, peer));
      }
      return;
    }
    case Kind::kExchange: {
      // Receives stand before anything is sent.
      int sends = 0;
      for (int step = 1; step < count; ++step) {
        const int from = member(operation, mine - step);
        if (pair_bytes(operation, from, rank) <= 0) continue;
        ++operation.left[static_cast<size_t>(mine)];
        expect(from);
      }
      for (int step = 1; step < count; ++step) {
        const int to = member(operation, mine + step);
        if (pair_bytes(operation, rank, to) <= 0) continue;
        ++operation.left[static_cast<size_t>(mine)];
        at(now + ++sends * operation.gap_s, What::kPost, number, rank, to);
      }
      if (operation.left[static_cast<size_t>(mine)] == 0) at(now, What::kDone, number, rank);
      return;
    }
    case Kind::kMessage:
      if (rank == operation.from) {
        post(number, rank, operation.to, now);
      } else {
        at(write(rank, operation.from, kPreamble, now), What::kCredit, number, operation.from, rank);
      }
      return;
  }
}

void Engine::done(int number, int rank, double now) {
  Operation& operation = operations_[static_cast<size_t>(number)];
  const size_t mine = slot(operation, rank);
  operation.done[mine] = 1;
  if (operation.whole >= 0) {
    crossed(number, rank, now);
  } else {
    Actor& actor = actors_[static_cast<size_t>(actor_of_[static_cast<size_t>(rank)])];
    settle(actor, now);
    actor.under_way = std::max(0, actor.under_way - 1);
    if (operation.waiter[mine] >= 0) at(now, What::kResume, -1, operation.waiter[mine]);
  }
  if (!pooled(operation)) return;
  const auto place = static_cast<size_t>(rank);
  if (queued_[place].empty()) {
    --threads_busy_[place];
    return;
  }
  const int next = queued_[place].front();
  queued_[place].pop_front();
  begin(next, rank, now);
}

// --- Gloo's ring -----------------------------------------------------------------------------------------

Engine::Segments Engine::segments(const Operation& operation) const {
  const auto total = static_cast<int64_t>(operation.bytes);
  const auto ranks = static_cast<int64_t>(size(operation)), element = static_cast<int64_t>(operation.element);
  const auto up = [](int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; };
  const int64_t most = element * (kSegment / element);
  const int64_t size = up(std::min((total + 2 * ranks - 1) / (2 * ranks), most), element);
  const int64_t count = up(std::max((total + size - 1) / size, 2 * ranks), ranks);
  return {size, count, count / ranks};
}

/// Of the segment that a rank sends to the one before it, or gets from the one behind it, in a turn.
double Engine::length(const Operation& operation, const Segments& cut, int phase, int place, int64_t index,
                      bool sends) const {
  const int64_t chunk = place + (phase == 0 ? 1 : 0) + (sends ? 0 : 1);
  const int64_t offset = (chunk * cut.each + index) % cut.count * cut.size;
  return std::max(0.0,
                  std::min(static_cast<double>(cut.size), operation.bytes - static_cast<double>(offset)));
}

void Engine::turn(int number, int rank, double now) {
  Operation& operation = operations_[static_cast<size_t>(number)];
  Ring& ring = this->ring(operation, rank);
  if (!ring.begun || ring.busy || ring.phase > 1) return;
  const Segments cut = segments(operation);
  const int mine = place(operation, rank), behind = member(operation, mine + 1);
  const int64_t turns = cut.count - cut.each;  // a rank sends every chunk but one in each phase
  for (;;) {
    if (ring.next == turns + 2) {
      ring.next = 0;
      if (++ring.phase > 1) return at(now, What::kDone, number, rank);
      continue;
    }
    const int64_t index = ring.next;
    if (index >= 2) {
      const double came = length(operation, cut, ring.phase, mine, index - 2, false);
      const double went = length(operation, cut, ring.phase, mine, index - 2, true);
      if (came > 0 && !ring.added) {
        if (ring.arrived == ring.received) return;
        ++ring.received;
        ring.added = true;
        const double adding = ring.phase == 0 ? came / or_no_limit(costs_.reduce_gbyte) : 0;
        if (adding > 0) {
          ring.busy = true;
          return at(now + adding, What::kThread, number, rank);
        }
      }
      if (went > 0) {
        if (ring.sent == ring.finished) return;
        ++ring.finished;
      }
      ring.added = false;
    }
    if (index < turns) {
      if (length(operation, cut, ring.phase, mine, index, false) > 0)
        at(write(rank, behind, kPreamble, now), What::kCredit, number, behind, rank);
      if (const double bytes = length(operation, cut, ring.phase, mine, index, true); bytes > 0) {
        ring.unsent[ring.posted++ % 2] = bytes;
        send_ring(number, rank, now);
      }
    }
    ++ring.next;
  }
}

/// Sends what was posted and the one before is ready for.
void Engine::send_ring(int number, int rank, double now) {
  Operation& operation = operations_[static_cast<size_t>(number)];
  Ring& ring = this->ring(operation, rank);
  const int before = member(operation, place(operation, rank) - 1);
  while (ring.sent < ring.posted && ring.sent < ring.credit) {
    const double bytes = ring.unsent[ring.sent++ % 2];
    count_sent(operation, rank, bytes);
    at(write(rank, before, kPreamble + bytes + kPreamble, now), What::kData, number, before, rank);
  }
}

// --- Two levels --------------------------------------------------------------------------------------------

const Engine::Levels& Engine::levels(int group) {
  const auto found = levels_.find(group);
  if (found != levels_.end()) return found->second;
  Levels made;
  std::unordered_map<int, int> numbers;  // of hosts
  for (const int rank : groups_[static_cast<size_t>(group)]) {
    const int next = static_cast<int>(made.hosts.size());
    const int host = numbers.try_emplace(seats_[static_cast<size_t>(rank)], next).first->second;
    if (host == next) made.hosts.emplace_back();
    made.hosts[static_cast<size_t>(host)].push_back(rank);
    made.host.push_back(host);
  }
  if (made.hosts.size() > 1 && made.hosts.size() < made.host.size()) {
    std::vector<int> leaders;
    for (const std::vector<int>& ranks : made.hosts) leaders.push_back(ranks.front());
    made.leaders = this->group(std::move(leaders));
  }
  return levels_[group] = std::move(made);
}

/// Adds an operation, and where its ranks share hosts the leaders' operations that it consists of.
int Engine::in_levels(Operation operation) {
  const Levels* const of_group = uses_levels_ ? &levels(operation.group) : nullptr;
  const int number = add(std::move(operation));
  if (of_group == nullptr || of_group->leaders < 0) return number;
  const Operation whole = operations_[static_cast<size_t>(number)];
  const bool summed = whole.kind == Kind::kAllReduce;
  const double most = summed ? kLevelPiece : whole.bytes;
  std::vector<double> parts;  // of hosts, where each rank has its own
  for (const std::vector<int>& ranks : of_group->hosts)
    if (!summed) parts.push_back(static_cast<double>(ranks.size()) * whole.bytes);
  std::vector<int> pieces;
  for (double from = 0; pieces.empty() || from < whole.bytes; from += most)
    pieces.push_back(add({.kind = whole.kind,
                          .group = of_group->leaders,
                          .bytes = std::min(most, whole.bytes - from),
                          .element = whole.element,
                          .root = of_group->host[static_cast<size_t>(whole.root)],
                          .parts = parts,
                          .whole = number}));
  operations_[static_cast<size_t>(number)].pieces = std::move(pieces);
  return number;
}

double Engine::nominal_bytes(const Operation& operation, int place) const {
  const double others = size(operation) - 1;
  if (operation.kind == Kind::kAllReduce) return 2 * operation.bytes * others / (others + 1);
  const bool root = place == operation.root;
  if (operation.kind == Kind::kGather) return root ? 0 : operation.bytes;
  return root ? others * operation.bytes : 0;
}

/// Through the memory of a host. Where all share a machine, those who copy share its cores.
double Engine::copying_s(double bytes, int host) const {
  const network::Link& memory = topology_.link(host, host);
  const double rate = std::min(memory.gbit * 1e9 / 8, or_no_limit(costs_.copy_gbyte));
  return memory.latency_ms / 1e3 + crowd() * bytes / rate;
}

double Engine::crowd() const {
  if (cores_.empty()) return 1;
  return std::max(1.0, static_cast<double>(workers_) / static_cast<double>(cores_.size()));
}

/// From a host's ranks to its leader; of a sum every rank adds a slice.
double Engine::seconds_up(const Operation& piece, const Levels& levels, int number) const {
  const std::vector<int>& here = levels.hosts[static_cast<size_t>(number)];
  const auto ranks = static_cast<double>(here.size()), all = static_cast<double>(levels.host.size());
  const int host = seats_[static_cast<size_t>(here.front())];
  switch (piece.kind) {
    case Kind::kAllReduce:
      if (ranks == 1) return 0;
      return copying_s(piece.bytes * 2 * (ranks - 1) / ranks, host) +
             crowd() * piece.bytes / or_no_limit(costs_.reduce_gbyte);
    case Kind::kScatter:
      return number == piece.root ? copying_s(all * piece.bytes, host) : 0;
    default:
      return copying_s(ranks * piece.bytes, host);
  }
}

double Engine::seconds_down(const Operation& piece, const Levels& levels, int number) const {
  const std::vector<int>& here = levels.hosts[static_cast<size_t>(number)];
  const auto ranks = static_cast<double>(here.size()), all = static_cast<double>(levels.host.size());
  const int host = seats_[static_cast<size_t>(here.front())];
  switch (piece.kind) {
    case Kind::kAllReduce:
      return ranks == 1 ? 0 : copying_s(piece.bytes, host);
    case Kind::kGather:
      return number == piece.root ? copying_s(all * piece.bytes, host) : 0;
    default:
      return copying_s(ranks * piece.bytes, host);
  }
}

/// Once all ranks of a host are there, its leader gets what they have, piece by piece.
void Engine::climb(int number, int rank, double now) {
  Operation& operation = operations_[static_cast<size_t>(number)];
  const Levels& levels = levels_.at(operation.group);
  const int mine = place(operation, rank), host = levels.host[static_cast<size_t>(mine)];
  count_sent(operation, rank, nominal_bytes(operation, mine));
  const std::vector<int>& ranks = levels.hosts[static_cast<size_t>(host)];
  if (++operation.here[static_cast<size_t>(host)] < static_cast<int>(ranks.size())) return;
  Lanes& lanes = lanes_[ranks.front()];
  for (const int piece : operation.pieces) {
    lanes.up = std::max(lanes.up, now) + seconds_up(operations_[static_cast<size_t>(piece)], levels, host);
    lanes.falling.emplace_back(piece, false);
    at(lanes.up, What::kGathered, piece, ranks.front());
  }
}

/// A leader has what the others sent: its host's ranks get it, behind what came before.
void Engine::crossed(int piece, int leader, double now) {
  Lanes& lanes = lanes_[leader];
  for (auto& [number, done] : lanes.falling) done = done || number == piece;
  for (; !lanes.falling.empty() && lanes.falling.front().second; lanes.falling.pop_front()) {
    const int number = lanes.falling.front().first;
    const Operation& next = operations_[static_cast<size_t>(number)];
    const Operation& whole = operations_[static_cast<size_t>(next.whole)];
    const Levels& levels = levels_.at(whole.group);
    const int host = levels.host[static_cast<size_t>(place(whole, leader))];
    lanes.down = std::max(lanes.down, now) + seconds_down(next, levels, host);
    if (number != whole.pieces.back()) continue;
    for (const int rank : levels.hosts[static_cast<size_t>(host)])
      at(lanes.down, What::kDone, next.whole, rank);
  }
}

// --- Messages between two ---------------------------------------------------------------------------------

double Engine::pair_bytes(const Operation& operation, int from, int to) const {
  if (operation.parts.empty()) return operation.bytes;
  const bool by_receiver = operation.to_owners || operation.kind == Kind::kScatter;
  return operation.parts[static_cast<size_t>(place(operation, by_receiver ? to : from))];
}

uint8_t& Engine::pair(Operation& operation, int from, int to) const {
  if (operation.kind == Kind::kMessage) return operation.pairs.front();
  return operation.pairs[static_cast<size_t>(place(operation, from)) * members(operation).size() +
                         static_cast<size_t>(place(operation, to))];
}

void Engine::post(int number, int from, int to, double now) {
  uint8_t& state = pair(operations_[static_cast<size_t>(number)], from, to);
  state |= kPosted;
  if ((state & kCredit) != 0) return transfer(number, from, to, now);
  write(from, to, kPreamble, now);  // says that it wants to send
}

void Engine::ready(int number, int from, int to, double now) {
  uint8_t& state = pair(operations_[static_cast<size_t>(number)], from, to);
  state |= kCredit;
  if ((state & kPosted) != 0) transfer(number, from, to, now);
}

void Engine::transfer(int number, int from, int to, double now) {
  const Operation& operation = operations_[static_cast<size_t>(number)];
  const double bytes = pair_bytes(operation, from, to);
  count_sent(operation, from, bytes);
  at(write(from, to, kPreamble + bytes, now), What::kData, number, to, from);
  arrived(number, from, now);  // for the sender it is done when it is written
}

/// A message is done at one end.
void Engine::arrived(int number, int rank, double now) {
  Operation& operation = operations_[static_cast<size_t>(number)];
  if (operation.kind == Kind::kMessage) return at(now, What::kDone, number, rank);
  const int mine = place(operation, rank);
  if (--operation.left[static_cast<size_t>(mine)] > 0) return;
  double after = now;
  // c10d gathers into one array and copies it out.
  if (operation.kind == Kind::kGather && mine == operation.root && operation.whole < 0)
    after += operation.bytes * size(operation) / or_no_limit(costs_.copy_gbyte);
  at(after, What::kDone, number, rank);
}

// --- Many ranks ------------------------------------------------------------------------------------------

void Engine::finish_in_rounds(int number) {
  Operation& operation = operations_[static_cast<size_t>(number)];
  const auto ranks = members(operation).size();
  const auto of = [&](size_t place) { return member(operation, static_cast<int>(place)); };
  std::vector<double> when = operation.begun;
  const auto carry = [&](int from, int to, double bytes) -> Wire& {
    Wire& way = wire(from, to);
    way.bytes += bytes;
    way.busy += bytes / way.rate;
    count_sent(operation, from, bytes);
    return way;
  };
  if (operation.kind == Kind::kAllReduce) {
    // Two segments of a chunk are on their way at a time, each after a round trip.
    const double chunk = operation.bytes / static_cast<double>(ranks);
    const double segment = std::min(chunk / 2, static_cast<double>(kSegment));
    const double adding = chunk / or_no_limit(costs_.reduce_gbyte);
    std::vector<double> round(ranks);
    for (size_t rank = 0; rank < ranks; ++rank) {
      const int from = of(rank + 1);
      const Wire& way = wire(from, of(rank));
      const double trip = 2 * (way.latency + hop_s_);
      round[rank] = chunk / (2 * segment) * std::max(trip + segment / way.rate, 2 * segment / way.rate);
      carry(from, of(rank), 2 * chunk * static_cast<double>(ranks - 1));
    }
    std::vector<double> next(ranks);
    for (size_t turn = 0; turn < 2 * (ranks - 1); ++turn) {
      const double extra = turn < ranks - 1 ? adding : 0;
      for (size_t rank = 0; rank + 1 < ranks; ++rank)
        next[rank] = std::max(when[rank], when[rank + 1]) + round[rank] + extra;
      next[ranks - 1] = std::max(when[ranks - 1], when[0]) + round[ranks - 1] + extra;
      when.swap(next);
    }
    events_done_ += static_cast<int64_t>(2 * (ranks - 1) * ranks);
  } else {
    std::vector<double> ends = when;
    const auto move = [&](size_t from, size_t to) {
      const double bytes = pair_bytes(operation, of(from), of(to));
      if (bytes <= 0) return;
      Wire& way = carry(of(from), of(to), bytes);
      const double hop = way.latency + hop_s_;
      if (std::exchange(way.round, number) != number) way.until = 0;
      way.until = std::max(way.until, std::max(when[to] + hop, when[from])) + bytes / way.rate;
      ends[to] = std::max(ends[to], way.until + hop);
      ends[from] = std::max(ends[from], way.until);
      ++events_done_;
    };
    const auto root = static_cast<size_t>(operation.root);
    for (size_t a = 0; a < ranks; ++a) {
      if (operation.kind == Kind::kExchange) {
        for (size_t step = 1; step < ranks; ++step) move(a, (a + step) % ranks);
      } else if (a != root) {
        operation.kind == Kind::kGather ? move(a, root) : move(root, a);
      }
    }
    when = ends;
  }
  for (size_t rank = 0; rank < ranks; ++rank) at(when[rank], What::kDone, number, of(rank));
}

}  // namespace syncopate::sim
