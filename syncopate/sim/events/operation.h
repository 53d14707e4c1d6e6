#pragma once

#include <cstdint>
#include <vector>

namespace syncopate::sim {

/// How far one rank is with Gloo's ring: two segments are on their way at any time.
struct RingState {
  int phase = 0, next = 0;
  int arrived = 0, received = 0;  ///< segments; those that were waited for
  int credit = 0, posted = 0, sent = 0, finished = 0;
  double unsent[2] = {};  ///< bytes of those posted last
  bool begun = false, added = false, busy = false;
};

/// What ranks do together: what was asked for, and how far it is.
struct Operation {
  enum class Kind : uint8_t { kAllReduce, kGather, kScatter, kExchange, kMessage };
  using enum Kind;
  Kind kind;
  int number = -1;  ///< that it is known by
  int group = 0;
  double bytes = 0;
  int element = 1, root = 0, from = 0, to = 0;
  bool to_owners = false;
  double gap_s = 0;
  std::vector<double> parts{};
  // While it goes on, by member (of a message: the sender, then the receiver):
  std::vector<uint8_t> done{};
  std::vector<int> waiter{};     ///< the actor that waits for its end; -1: none
  std::vector<int> left{};       ///< messages that a member still waits for
  std::vector<uint8_t> pairs{};  ///< by `from * members + to`: how far their message is
  std::vector<RingState> rings{};
  std::vector<double> begun{};  ///< in rounds: when each member came
  int begun_count = 0;
  // In two levels:
  std::vector<int> pieces{};  ///< the operations among leaders that it consists of
  int whole = -1;             ///< of such an operation: what it is a piece of
  std::vector<int> here{};    ///< by host: members that have begun

  /// What c10d makes in a few threads of each rank, and comm/two_level in two levels.
  bool is_collective() const { return kind != kExchange && kind != kMessage; }
};

}  // namespace syncopate::sim
