#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "syncopate/comm/pending.h"
#include "syncopate/lifeline/lifeline.h"

namespace c10d {
class Work;
}

namespace syncopate::comm {

/// State that a Gloo group shares with its operations: how to wait, and whether the group is dead.
class GlooWaits {
 public:
  GlooWaits(std::shared_ptr<lifeline::Lifeline> lifeline, std::chrono::milliseconds timeout)
      : lifeline_(std::move(lifeline)), timeout_(timeout) {}

  const std::shared_ptr<lifeline::Lifeline>& lifeline() const { return lifeline_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }
  void check() const;  ///< throws CommError when the group is dead or the run has failed
  bool dead() const;

  /// Until `poll(slice)` returns true. Throws CommError when the run fails, when poll throws, or at the
  /// deadline.
  void wait(const char* operation, const std::function<bool(std::chrono::milliseconds slice)>& poll);
  /// For operations that cannot be waited for in slices: `block(timeout)` returns false after `abort` was
  /// called from outside.
  void wait_whole(const char* operation, const std::function<bool(std::chrono::milliseconds)>& block,
                  const std::function<void()>& abort);
  /// Handles an error from Gloo: throws CommError, naming the failed rank if the lifeline learns of it soon.
  [[noreturn]] void broken(const char* operation, const std::string& reason);

 private:
  [[noreturn]] void out_of_time(const char* operation);
  [[noreturn]] void give_up(const std::string& sentence);

  const std::shared_ptr<lifeline::Lifeline> lifeline_;
  std::chrono::milliseconds timeout_;
  mutable std::mutex mutex_;
  std::string failure_;  ///< why the group is dead
};

/// A collective (waited for in slices) or a point-to-point operation (one single wait, because in Gloo a
/// wait that times out closes the connection). `after` runs when it is done.
Pending pending_over(std::shared_ptr<GlooWaits> waits, const char* operation,
                     c10::intrusive_ptr<c10d::Work> work, bool collective, std::function<void()> after);

}  // namespace syncopate::comm
