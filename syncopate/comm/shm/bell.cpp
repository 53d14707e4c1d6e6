#include "syncopate/comm/shm/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace syncopate::comm {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "the kernel looks at the number itself");

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  // Without FUTEX_PRIVATE_FLAG: the other ranks are other processes.
  ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

void Bell::wake() {
  rung_.fetch_add(1);
  futex(rung_, FUTEX_WAKE, INT_MAX, nullptr);
}

void Bell::wait(uint32_t seen, std::chrono::milliseconds most) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec timeout{seconds.count(), std::chrono::nanoseconds(most - seconds).count()};
  futex(rung_, FUTEX_WAIT, seen, &timeout);
}

}  // namespace syncopate::comm
