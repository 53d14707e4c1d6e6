#include "syncopate/lifeline/failure.h"

#include <fmt/format.h>

namespace syncopate::lifeline {

std::string Status::text() const {
  if (phase.empty()) return "start-up";
  return step < 0 ? phase : fmt::format("{} of step {}", phase, step);
}

std::string Failure::for_others() const {
  return cause == Cause::kReported ? fmt::format("{} failed during {}: {}", name_of(rank), activity, sentence)
                                   : sentence;
}

std::string name_of(int rank) { return rank < 0 ? "the launcher" : fmt::format("rank {}", rank); }

Failure died(int rank, const Status& status) {
  const std::string activity = status.text();
  return {rank, Cause::kDied, 4, activity, fmt::format("{} died during {}", name_of(rank), activity)};
}

Failure hung(int rank, const Status& status, double seconds) {
  const std::string activity = status.text();
  return {rank, Cause::kHung, 4, activity,
          fmt::format("{} did not answer for {:.3g} s during {}", name_of(rank), seconds, activity)};
}

std::string fell_silent(int rank, const Status& status, std::chrono::milliseconds timeout) {
  return fmt::format(
      "{} has not answered for {:g} s during {}: it was stopped, or cannot be reached; the run waits for up "
      "to {:g} s",
      name_of(rank), std::chrono::duration<double>(kSilence).count(), status.text(),
      std::chrono::duration<double>(timeout).count());
}

Failure never_came(int rank, int size, double seconds, const std::string& address) {
  return {rank, Cause::kHung, 4, Status{}.text(),
          fmt::format(
              "rank {} of {} did not come to {} within {:.3g} s; was it started with the same rendezvous?",
              rank, size, address, seconds)};
}

Failure reported(int rank, const Status& status, int exit_code, const std::string& sentence) {
  return {rank, Cause::kReported, exit_code, status.text(), sentence};
}

}  // namespace syncopate::lifeline
