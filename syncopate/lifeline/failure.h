#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace syncopate::lifeline {

/// What a rank is doing, as it last said.
struct Status {
  int64_t step = -1;         ///< negative: not in a step
  std::string phase;         ///< "forward", "checkpoint"; empty: it has not said yet
  std::string text() const;  ///< "backward of step 17", "checkpoint", "start-up"
};

enum class Cause {
  kDied,      ///< its connection broke without a goodbye
  kHung,      ///< it stopped answering, or kept others waiting past their deadline
  kReported,  ///< it said itself what went wrong
};

/// Why a run cannot go on. The first failure of a run wins; every rank is told that one.
struct Failure {
  int rank = -1;  ///< -1: no rank's, the launcher's
  Cause cause = Cause::kDied;
  int exit_code = 4;     ///< the failing worker's own, when it reported one
  std::string activity;  ///< Status::text() of the rank at that time
  std::string
      sentence;  ///< for the user: "rank 2 died during backward of step 17"; a report is as the rank said it
  std::string for_others()
      const;  ///< the sentence as another rank says it: a report gets its rank and activity
};

Failure died(int rank, const Status& status);
Failure hung(int rank, const Status& status, double seconds);
Failure never_came(int rank, int size, double seconds, const std::string& address);
Failure reported(int rank, const Status& status, int exit_code, const std::string& sentence);

/// Four beats or more: whoever says nothing for so long is named, long before the run gives up.
inline constexpr std::chrono::milliseconds kSilence{2000};

/// What the user is told then.
std::string fell_silent(int rank, const Status& status, std::chrono::milliseconds timeout);

/// "rank 2", or "the launcher" for -1.
std::string name_of(int rank);

}  // namespace syncopate::lifeline
