#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace syncopate::lifeline {

/// Where all ranks halt, and why.
struct Meeting {
  int64_t step = 0;    ///< before the step with this number
  int64_t wishes = 0;  ///< the sum of what ranks wished for, as bits
};

/// Brings ranks that do not talk in every step to a halt after the same one. When somebody wishes it, every
/// rank is asked how many steps it has begun and begins no other before it is told; the meeting is after the
/// furthest. Who is inside an exchange answers too, so nobody is waited for in vain. Plain bookkeeping: no
/// sockets, no threads.
class Meetings {
 public:
  explicit Meetings(int size) : begun_(static_cast<size_t>(size)), met_(static_cast<size_t>(size)) {}

  /// True: all are to be asked now. A wish that comes while ranks are on their way is kept for the next time.
  bool wish(int64_t wishes);
  /// A rank says how many steps it has begun . The meeting, once all have said.
  std::optional<Meeting> here(int rank, int64_t begun);
  /// A rank has come. True: all have, and somebody wishes another one: all are to be asked now.
  bool met(int rank);

 private:
  enum class State { kNone, kAsking, kCalled };
  void ask();

  State state_ = State::kNone;
  int64_t wishes_ = 0;  ///< not yet called for
  std::vector<std::optional<int64_t>> begun_;
  std::vector<bool> met_;
};

}  // namespace syncopate::lifeline
