#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/lifeline/failure.h"

namespace syncopate::lifeline {

/// What the server knows of every rank, and whom that makes the culprit. Plain bookkeeping: no sockets, no
/// threads, the time is handed in.
class Roster {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Roster(int size, std::chrono::milliseconds timeout, Time now);

  int size() const { return static_cast<int>(members_.size()); }
  void joined(int rank, Time now);
  void left(int rank);  ///< said goodbye
  void beat(int rank, bool waiting, Time now);
  void status(int rank, Status status, Time now);
  bool is_joined(int rank) const;
  bool has_left(int rank) const;
  bool all_joined() const;
  const Status& status_of(int rank) const;

  /// A rank that has not been heard of for longer than the timeout.
  std::optional<Failure> overdue(Time now) const;

  /// Ranks that have not been heard of for kSilence, each once until it is heard of again.
  std::vector<int> newly_silent(Time now);

  /// Whose fault it is that `victim` waited `seconds` in `operation`: one that never came, else one that has
  /// stopped answering, else one that is not itself waiting. When all are waiting, it is the victim's own
  /// sentence.
  Failure culprit(int victim, const std::string& operation, double seconds, const std::string& address,
                  Time now) const;

  /// The server itself stood still (stopped, laptop asleep): nobody is to blame for that silence.
  void excuse(std::chrono::steady_clock::duration pause);

 private:
  struct Member {
    bool joined = false, left = false, waiting = false, told = false;
    Status status;
    Time heard, changed;
  };
  std::vector<Member> members_;
  std::chrono::milliseconds timeout_;
};

}  // namespace syncopate::lifeline
