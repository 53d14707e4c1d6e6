#include "syncopate/lifeline/roster.h"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::lifeline {

Roster::Roster(int size, std::chrono::milliseconds timeout, Time now)
    : members_(static_cast<size_t>(size)), timeout_(timeout) {
  for (Member& member : members_) member.heard = member.changed = now;
}

void Roster::joined(int rank, Time now) {
  Member& member = members_.at(static_cast<size_t>(rank));
  member.joined = true;
  member.heard = member.changed = now;
}

void Roster::left(int rank) { members_.at(static_cast<size_t>(rank)).left = true; }

void Roster::beat(int rank, bool waiting, Time now) {
  Member& member = members_.at(static_cast<size_t>(rank));
  if (member.waiting != waiting) member.changed = now;
  member.waiting = waiting;
  member.told = false;
  member.heard = now;
}

void Roster::status(int rank, Status status, Time now) {
  Member& member = members_.at(static_cast<size_t>(rank));
  member.status = std::move(status);
  member.told = false;
  member.heard = member.changed = now;
}

bool Roster::is_joined(int rank) const { return members_.at(static_cast<size_t>(rank)).joined; }
bool Roster::has_left(int rank) const { return members_.at(static_cast<size_t>(rank)).left; }
const Status& Roster::status_of(int rank) const { return members_.at(static_cast<size_t>(rank)).status; }

bool Roster::all_joined() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.joined; });
}

std::optional<Failure> Roster::overdue(Time now) const {
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    if (!member.joined || member.left || now - member.heard <= timeout_) continue;
    return hung(static_cast<int>(rank), member.status,
                std::chrono::duration<double>(now - member.heard).count());
  }
  return std::nullopt;
}

std::vector<int> Roster::newly_silent(Time now) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    Member& member = members_[rank];
    if (!member.joined || member.left || member.told || now - member.heard <= kSilence) continue;
    member.told = true;
    ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

Failure Roster::culprit(int victim, const std::string& operation, double seconds, const std::string& address,
                        Time now) const {
  // Beats come at least ten times per timeout: a third of it without one is no accident.
  const auto stale = timeout_ / 3;
  int silent = -1, busy = -1, finished = -1;
  for (int rank = 0; rank < size(); ++rank) {
    const Member& member = members_[static_cast<size_t>(rank)];
    if (member.left) finished = rank;
    if (rank == victim || member.left) continue;
    if (!member.joined) return never_came(rank, size(), seconds, address);
    const auto older = [&](int than, Time Member::*since) {
      return than < 0 || member.*since < members_[static_cast<size_t>(than)].*since;
    };
    if (now - member.heard > stale && older(silent, &Member::heard)) silent = rank;
    if (!member.waiting && older(busy, &Member::changed)) busy = rank;
  }
  if (silent >= 0) return hung(silent, status_of(silent), seconds);
  if (busy >= 0) return hung(busy, status_of(busy), seconds);
  Failure mutual = hung(victim, status_of(victim), seconds);
  mutual.sentence = fmt::format(
      "rank {} waited {:.3g} s in {} during {} while {}; do all ranks make the same calls?", victim, seconds,
      operation, mutual.activity,
      finished < 0 ? "all others were waiting too" : fmt::format("rank {} had finished", finished));
  return mutual;
}

void Roster::excuse(std::chrono::steady_clock::duration pause) {
  for (Member& member : members_) member.heard += pause;
}

}  // namespace syncopate::lifeline
