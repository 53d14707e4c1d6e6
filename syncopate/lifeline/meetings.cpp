#include "syncopate/lifeline/meetings.h"

#include <algorithm>

namespace syncopate::lifeline {

void Meetings::ask() {
  state_ = State::kAsking;
  std::fill(begun_.begin(), begun_.end(), std::nullopt);
  std::fill(met_.begin(), met_.end(), false);
}

bool Meetings::wish(int64_t wishes) {
  wishes_ |= wishes;
  if (state_ != State::kNone) return false;
  ask();
  return true;
}

std::optional<Meeting> Meetings::here(int rank, int64_t begun) {
  if (state_ != State::kAsking) return std::nullopt;
  begun_.at(static_cast<size_t>(rank)) = begun;
  if (std::any_of(begun_.begin(), begun_.end(), [](const auto& steps) { return !steps; }))
    return std::nullopt;
  state_ = State::kCalled;
  Meeting meeting{.wishes = wishes_};
  for (const auto& steps : begun_) meeting.step = std::max(meeting.step, *steps);
  wishes_ = 0;
  return meeting;
}

bool Meetings::met(int rank) {
  if (state_ != State::kCalled) return false;
  met_.at(static_cast<size_t>(rank)) = true;
  if (!std::all_of(met_.begin(), met_.end(), [](bool met) { return met; })) return false;
  state_ = State::kNone;
  return wishes_ != 0 && wish(0);
}

}  // namespace syncopate::lifeline
