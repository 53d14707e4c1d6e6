#include "syncopate/comm/mpi/state.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/comm/group.h"

namespace syncopate::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// MPI moves on only while it is called, and says nothing when something has come: who waits looks again and
/// again, leaving the core to others in between. After a while it sleeps a little each time.
class Looks {
 public:
  explicit Looks(microseconds eager) : until_(Clock::now() + eager) {}
  void rest() const {
    if (Clock::now() < until_) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(microseconds(50));
    }
  }

 private:
  Clock::time_point until_;
};

constexpr const char* kFarewell = "mpi/left";  ///< somebody has left

std::string farewell_of(int process) { return fmt::format("{}/{}", kFarewell, process); }

/// Whether a rank that is waited for has left. What it sent before may still be on its way for a moment.
class Farewells {
 public:
  Farewells(lifeline::Lifeline& lifeline, const MpiLink& link) : lifeline_(lifeline), link_(link) {}

  /// Who has left and will not come; none: kAnyRank. Asks now and then.
  int missing(const std::function<std::vector<int>()>& awaited) {
    constexpr milliseconds kOnItsWay(1500);
    const Clock::time_point now = Clock::now();
    if (now < next_) return kAnyRank;
    next_ = now + kPause;
    if (since_.empty() && !lifeline_.exist({kFarewell})) return kAnyRank;
    const std::vector<int> ranks = awaited();
    for (const int rank : std::set<int>(ranks.begin(), ranks.end())) {
      if (const auto known = since_.find(rank); known != since_.end()) {
        if (now - known->second >= kOnItsWay) return rank;
      } else if (lifeline_.exist({farewell_of(link_.process(rank))})) {
        since_[rank] = now;
      }
    }
    return kAnyRank;
  }

 private:
  lifeline::Lifeline& lifeline_;
  const MpiLink& link_;
  std::map<int, Clock::time_point> since_;  ///< when it was seen that a rank has left
  static constexpr milliseconds kPause{250};
  Clock::time_point next_ = Clock::now() + kPause;
};

}  // namespace

void say_farewell(lifeline::Lifeline& lifeline, int process) {
  lifeline.set(farewell_of(process), "");
  lifeline.set(kFarewell, "");
}

void MpiState::until(const std::function<bool()>& done, const std::function<std::vector<int>()>& awaited,
                     const char* operation, Wait* wait) const {
  Farewells farewells(*waits->lifeline(), *link);
  // A thread behind the backward pass leaves it the core.
  const Looks looks(wait != nullptr ? microseconds(20000) : microseconds(200));
  const auto look = [&](milliseconds slice) {
    const Clock::time_point until = Clock::now() + std::min(slice, milliseconds(20));
    do {
      if (done()) return true;
      if (closed.load()) throw CommError("the group was destroyed while it was used");
      looks.rest();
    } while (Clock::now() < until);
    const int gone = farewells.missing(awaited);
    if (gone == kAnyRank) return false;
    if (done()) return true;
    waits->deserted(operation, link->process(gone), milliseconds(0));  // who fails says no farewell
  };
  if (wait != nullptr) return wait->until(look);
  do {
    waits->check();
  } while (!look(milliseconds(20)));
}

}  // namespace syncopate::comm
