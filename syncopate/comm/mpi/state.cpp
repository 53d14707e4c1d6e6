#include "syncopate/comm/mpi/state.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "syncopate/base/error.h"

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

}  // namespace

void MpiState::until(const std::function<bool()>& done, Wait* wait) const {
  // A thread behind the backward pass leaves it the core.
  const Looks looks(wait != nullptr ? microseconds(20000) : microseconds(200));
  const auto look = [&](milliseconds slice) {
    const Clock::time_point until = Clock::now() + std::min(slice, milliseconds(20));
    do {
      if (done()) return true;
      if (closed.load()) throw CommError("the group was destroyed while it was used");
      looks.rest();
    } while (Clock::now() < until);
    return false;
  };
  if (wait != nullptr) return wait->until(look);
  do {
    waits->check();
  } while (!look(milliseconds(20)));
}

}  // namespace syncopate::comm
