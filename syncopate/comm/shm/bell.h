#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace syncopate::comm {

/// Lies in memory that processes share, zero at first: who waits for a change there sleeps on it, who made
/// one rings it. A change is an atomic store with sequential consistency before ring(); `ready` looks at it
/// with such loads.
class Bell {
 public:
  void ring() {
    if (sleepers_.load() > 0) wake();
  }

  /// Until it is rung, or for `most` at the longest; not at all where `ready` says yes by now.
  template <typename Ready>
  void sleep(std::chrono::milliseconds most, const Ready& ready) {
    sleepers_.fetch_add(1);
    const uint32_t seen = rung_.load();
    if (!ready()) wait(seen, most);
    sleepers_.fetch_sub(1);
  }

 private:
  void wake();
  void wait(uint32_t seen, std::chrono::milliseconds most);

  std::atomic<uint32_t> rung_;
  std::atomic<uint32_t> sleepers_;  ///< one that was killed stays counted: waking nobody costs little
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
};

}  // namespace syncopate::comm
