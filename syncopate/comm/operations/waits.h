#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "syncopate/base/error.h"
#include "syncopate/lifeline/lifeline.h"

namespace syncopate::comm {

/// What is expected of another rank never comes: it has left in good order or, in a part of another group,
/// its connection is gone and no rank is known to have failed. The group is dead; the run has failed only
/// where somebody waits for the operation (Waits::awaited).
class Deserted : public CommError {
 public:
  using CommError::CommError;
};

/// The timeout of a group whose owner keeps the deadline and tells the lifeline who waits: a part of another
/// group.
inline constexpr std::chrono::milliseconds kNoDeadline = std::chrono::milliseconds::max();

/// State that a group shares with its operations: how to wait for others, and whether the group is dead.
class Waits {
 public:
  /// How long the lifeline may take to learn of a failure: groups and connections of whoever fails go first.
  static constexpr std::chrono::milliseconds kGrace{1000};

  Waits(std::shared_ptr<lifeline::Lifeline> lifeline, std::chrono::milliseconds timeout)
      : lifeline_(std::move(lifeline)), timeout_(timeout) {}

  const std::shared_ptr<lifeline::Lifeline>& lifeline() const { return lifeline_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }
  void check() const;  ///< throws CommError when the group is dead (what ended it) or the run has failed
  bool dead() const;

  using Poll = std::function<bool(std::chrono::milliseconds slice)>;
  /// Until `poll(slice)` returns true. Throws CommError when the run fails, when poll throws, or at the
  /// deadline.
  void wait(const char* operation, const Poll& poll);
  /// For operations that cannot be waited for in slices: `block(timeout)` returns false after `abort` was
  /// called from another thread.
  void wait_whole(const char* operation, const std::function<bool(std::chrono::milliseconds)>& block,
                  const std::function<void()>& abort);
  /// Handles a transport's error: throws CommError, naming the failed rank if the lifeline learns of it soon.
  /// If not, the run has failed by this, and all ranks learn of it; without a deadline it throws Deserted.
  [[noreturn]] void broken(const char* operation, const std::string& reason);
  /// Throws Deserted by a rank (the lifeline's number), unless the lifeline learns within `grace` of a
  /// failure because of which that rank left.
  [[noreturn]] void deserted(const char* operation, int by, std::chrono::milliseconds grace);
  /// Waits by `wait` for somebody who needs the operation: if a rank has left meanwhile, the run has failed,
  /// and all ranks learn of it.
  void awaited(const std::function<void()>& wait);
  /// The group is dead from here on, unless it was: every later call throws CommError with the first
  /// sentence, and whoever waits soon does.
  void die(const std::string& sentence);
  /// Throws as check() does, else does `body`. What it throws leaves the group dead: ranks no longer agree on
  /// what comes next.
  void dying(const std::function<void()>& body);

 private:
  friend class Wait;
  /// Why the group is dead; an empty sentence: it is not.
  struct End {
    std::string sentence;
    bool deserted = false;
    void raise() const;  ///< throws it, if there is one
  };
  [[noreturn]] void out_of_time(const char* operation);
  [[noreturn]] void give_up(const std::string& sentence);
  [[noreturn]] void desert(const std::string& sentence);
  void die_of(const std::exception& error);
  void die_by(End end);

  const std::shared_ptr<lifeline::Lifeline> lifeline_;
  std::chrono::milliseconds timeout_;
  mutable std::mutex mutex_;
  End end_;
  std::list<std::function<void()>> aborts_;  ///< of those who wait and do not look
};

/// One operation's wait, however many things it waits for: they have one deadline. While it exists, the
/// lifeline's server knows that this rank is waiting, unless there is no deadline.
class Wait {
 public:
  Wait(Waits& waits, const char* operation) : waits_(waits), operation_(operation) {
    if (waits.timeout() != kNoDeadline) waiting_.emplace(*waits.lifeline());
  }
  void until(const Waits::Poll& poll);  ///< as Waits::wait

 private:
  /// In a timeout's units, since the largest timeout there is has no smaller ones.
  std::chrono::milliseconds waited() const { return std::chrono::floor<std::chrono::milliseconds>(waited_); }

  Waits& waits_;
  const char* operation_;
  std::optional<lifeline::Lifeline::Waiting> waiting_;
  std::chrono::steady_clock::duration waited_{0};
};

}  // namespace syncopate::comm
