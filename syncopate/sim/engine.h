#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "syncopate/network/topology.h"
#include "syncopate/sim/profile.h"

// Ranks that compute, send and wait, played out event by event. Messages go as Gloo's TCP transport sends
// them: data leave when the receiver has said that it is ready, so a message to somebody far away costs a
// round trip; what goes between two hosts goes in the order in which it was written.
namespace syncopate::sim {

/// What a step's time is counted as.
enum class Account : uint8_t { kCompute, kExchange, kData };

/// One thing that an actor does, and then goes on to the next.
struct Action {
  enum class Kind : uint8_t { kCompute, kStart, kWait, kLock, kUnlock, kMeet, kMark };
  Kind kind = Kind::kMark;
  Account account = Account::kCompute;  ///< of kCompute; waits are exchange
  int operation = -1;                   ///< of kStart, kWait; the number of the lock, or of the meeting
  double seconds = 0;
  bool asleep = false;  ///< of kCompute: time passes, and no core is used
  int actors = 0;       ///< of kMeet: nobody goes on before so many are there
};

class Engine {
 public:
  /// Ranks from 0: `workers`, which take part in collectives, and servers behind them.
  Engine(const network::Topology& topology, std::vector<int> seats, int workers, const LocalCosts& costs);

  /// All ranks share one machine of so many cores. To deal with a message takes a core `message_s`, one after
  /// the other where there are more messages than cores; while as many actors compute, whoever is woken first
  /// waits for a turn of the scheduler's, `slice_s`.
  void share_machine(int64_t cores, double message_s, double slice_s);
  /// Those who compute at the same time share the machine's cores, so many, instead of having one each: for
  /// ranks that compute in turns.
  void share_cores(int64_t cores) { shared_cores_ = static_cast<double>(cores); }
  /// Collectives of ranks of which some share a host go in two levels, as comm/two_level's do: through memory
  /// to the first rank of each host, among those as Gloo does, and back through memory. Holds for operations
  /// that are made from here on.
  void use_levels() { uses_levels_ = true; }

  /// Workers that have operations of their own; group 0 is all of them.
  int group(std::vector<int> ranks);

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
  int actor(int rank);
  std::vector<Action>& script(int actor) { return actors_[static_cast<size_t>(actor)].script; }

  void play();

  struct Mark {
    double at = 0;
    double compute = 0, exchange = 0, data = 0;  ///< since the beginning
    double hidden = 0;  ///< operations under way while the actor did not wait for any
    double sent = 0;    ///< bytes by its rank, protocol apart
  };
  const std::vector<Mark>& marks(int actor) const { return actors_[static_cast<size_t>(actor)].marks; }
  int first_actor(int rank) const { return actor_of_[static_cast<size_t>(rank)]; }

  struct WireUse {
    int from, to;  ///< hosts
    double bytes, busy_s;
  };
  std::vector<WireUse> wires() const;  ///< between different hosts
  int64_t events() const { return events_done_; }

  /// More ranks than this are played round by round instead of message by message.
  static constexpr int kPlayedRanks = 64;

 private:
  enum class Kind : uint8_t { kAllReduce, kGather, kScatter, kExchange, kMessage };
  /// One rank's place in Gloo's ring: two segments are on their way at any time.
  struct Ring {
    int phase = 0, next = 0;
    int arrived = 0, received = 0;  ///< segments; those that were waited for
    int credit = 0, posted = 0, sent = 0, finished = 0;
    double unsent[2] = {};  ///< bytes of those posted last
    bool begun = false, added = false, busy = false;
  };
  struct Operation {
    Kind kind;
    int group = 0;
    double bytes = 0;
    int element = 1, root = 0, from = 0, to = 0;
    bool to_owners = false;
    double gap_s = 0;
    std::vector<double> parts{};
    // While it goes on:
    std::vector<Ring> rings{};
    std::vector<uint8_t> pairs{};  ///< of `from * members + to`: posted 1, credit 2
    std::vector<int> left{};       ///< messages that a member still waits for
    std::vector<uint8_t> done{};
    std::vector<int> waiter{};
    std::vector<double> begun{};
    int begun_count = 0;
    // In two levels:
    std::vector<int> pieces{};  ///< the operations among leaders that it consists of
    int whole = -1;             ///< of such an operation: what it is a piece of
    std::vector<int> here{};    ///< by host: members that have begun
  };
  /// A group's ranks, by host.
  struct Levels {
    int leaders = -1;                     ///< the group of each host's first
    std::vector<std::vector<int>> hosts;  ///< their ranks
    std::vector<int> host;                ///< of a place in the group
  };
  /// How far a leader is with the operations of its host.
  struct Lanes {
    double up = 0, down = 0;                     ///< until when memory is at work, either way
    std::deque<std::pair<int, bool>> falling{};  ///< pieces in their order; whether they have crossed
  };
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
  struct Wire {
    int from, to;
    double rate, latency;
    double free = 0, bytes = 0, busy = 0;
    double stretch = 0;  ///< bytes since it was last idle
    int round = -1;      ///< the operation that was last played in rounds over it
    double until = 0;    ///< when it is done with that
  };
  enum class What : uint8_t { kResume, kPost, kCredit, kData, kThread, kDone, kWorked, kGathered };
  struct Event {
    double at;
    uint64_t number;
    What what;
    int operation, rank, peer;
    bool waited = false;  ///< for a core
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  struct Lock {
    bool held = false;
    std::deque<int> waiting{};
  };

  int add(Operation operation);
  void at(double time, What what, int operation, int rank, int peer = -1);
  Wire& wire(int from, int to);
  static double fullness(Wire& way, const Wire& back, double start, double bytes);
  double write(int from, int to, double bytes, double now);
  /// In two levels what a rank sends is counted as Gloo would send it, as records count it.
  void count_sent(const Operation& operation, int rank, double bytes) {
    if (operation.whole < 0) sent_[static_cast<size_t>(rank)] += bytes;
  }

  double turn_on_a_core(const Event& event);
  double pace() const;
  void reckon(double now);
  void expect_next(double now);
  void worked(int version, double now);
  void resume(int actor, double now);
  bool act(int actor, const Action& action, double now);
  void settle(Actor& actor, double now);
  void prepare(Operation& operation) const;
  void start(int operation, int actor, double now);
  void enter(int operation, int rank, double now);
  void begin(int operation, int rank, double now);
  void done(int operation, int rank, double now);
  bool pooled(const Operation& operation) const {
    return operation.kind != Kind::kExchange && operation.kind != Kind::kMessage && operation.pieces.empty();
  }
  size_t slot(const Operation& operation, int rank) const;
  const std::vector<int>& members(const Operation& operation) const {
    return groups_[static_cast<size_t>(operation.group)];
  }
  int size(const Operation& operation) const { return static_cast<int>(members(operation).size()); }
  /// Its number among the members.
  int place(const Operation& operation, int rank) const {
    return places_[static_cast<size_t>(operation.group)][static_cast<size_t>(rank)];
  }
  int member(const Operation& operation, int place) const {
    const int count = size(operation);
    return members(operation)[static_cast<size_t>((place % count + count) % count)];
  }
  Ring& ring(Operation& operation, int rank) const {
    return operation.rings[static_cast<size_t>(place(operation, rank))];
  }

  struct Segments {
    int64_t size, count, each;
  };
  Segments segments(const Operation& operation) const;
  double length(const Operation& operation, const Segments& cut, int phase, int place, int64_t index,
                bool sends) const;
  void turn(int operation, int rank, double now);
  void send_ring(int operation, int rank, double now);

  int in_levels(Operation operation);
  const Levels& levels(int group);
  double nominal_bytes(const Operation& operation, int place) const;
  double seconds_up(const Operation& piece, const Levels& levels, int number) const;
  double seconds_down(const Operation& piece, const Levels& levels, int number) const;
  double copying_s(double bytes, int host) const;
  double crowd() const;
  void climb(int operation, int rank, double now);
  void crossed(int piece, int leader, double now);

  double pair_bytes(const Operation& operation, int from, int to) const;
  void post(int operation, int from, int to, double now);
  void ready(int operation, int from, int to, double now);
  void transfer(int operation, int from, int to, double now);
  void arrived(int operation, int rank, double now);
  uint8_t& pair(Operation& operation, int from, int to) const;

  void finish_in_rounds(int operation);

  const network::Topology& topology_;
  std::vector<int> seats_;
  int workers_;
  LocalCosts costs_;
  double hop_s_;
  std::vector<std::vector<int>> groups_{}, places_{};
  std::vector<Operation> operations_{};
  bool uses_levels_ = false;
  std::unordered_map<int, Levels> levels_{};  ///< by group
  std::unordered_map<int, Lanes> lanes_{};    ///< by leader
  std::vector<Actor> actors_{};
  std::deque<Wire> wires_{};
  std::unordered_map<uint64_t, size_t> wire_of_{};
  std::vector<int> wire_between_{};  ///< of `from * hosts + to`: its number; -1: none yet. Of few hosts
  std::vector<int> threads_busy_{};
  std::vector<std::deque<int>> queued_{};
  std::vector<double> sent_{};
  std::vector<int> actor_of_{};  ///< of a rank: its first; -1: none
  std::unordered_map<int, Lock> locks_{};
  std::unordered_map<int, std::vector<int>> meetings_{};
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_{};
  uint64_t numbered_ = 0;
  int64_t events_done_ = 0;
  std::vector<double> cores_;  ///< until when each deals with messages; none: every rank has its own machine
  size_t computing_ = 0;
  double message_s_ = 0, slice_s_ = 0;
  struct Work {
    int actor;
    double left;  ///< seconds of a core
  };
  double shared_cores_ = 0;  ///< 0: everybody has one
  std::vector<Work> work_{};
  double reckoned_ = 0;
  int next_worked_ = 0;  ///< the event that counts; others are out of date
};

}  // namespace syncopate::sim
