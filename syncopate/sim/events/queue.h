#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace syncopate::sim {

/// Something that happens to a rank, or to an actor.
struct Event {
  enum class Kind : uint8_t {
    kResume,    ///< an actor, in the place of the rank, goes on
    kPost,      ///< a message to the peer is packed and may go
    kCredit,    ///< the peer has said that it is ready for a message
    kData,      ///< a message is there
    kThread,    ///< a rank has added what came
    kDone,      ///< an operation is over for a rank
    kWorked,    ///< somebody is through with its work on shared cores; a version in the operation's place
    kGathered,  ///< a leader has what the ranks of its host send
  };
  using enum Kind;
  double at;
  uint64_t number;  ///< of those at one time the first that was planned comes first
  Kind kind;
  int operation, rank, peer;
  bool waited = false;  ///< for a core
  bool operator>(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
};

/// What is going to happen, in the order of time.
class Queue {
 public:
  void at(double time, Event::Kind kind, int operation, int rank, int peer = -1) {
    events_.push({time, planned_++, kind, operation, rank, peer});
  }
  /// Once more, with the number that it has.
  void put_back(const Event& event) { events_.push(event); }
  bool empty() const { return events_.empty(); }
  Event next() {
    const Event event = events_.top();
    events_.pop();
    ++played_;
    return event;
  }

  /// Steps that somebody made without an event for each.
  void count(int64_t steps) { played_ += steps; }
  int64_t played() const { return played_; }

 private:
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_{};
  uint64_t planned_ = 0;
  int64_t played_ = 0;
};

}  // namespace syncopate::sim
