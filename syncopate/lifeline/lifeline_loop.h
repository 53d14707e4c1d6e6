#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "syncopate/lifeline/lifeline.h"
#include "syncopate/lifeline/meetings.h"
#include "syncopate/lifeline/wire.h"

namespace syncopate::lifeline {

/// A Lifeline's thread: reads the server's messages, sends heartbeats, runs the last resort. `mutex_` guards
/// all members.
class Lifeline::Loop {
 public:
  explicit Loop(const LifelineOptions& options);
  ~Loop();

  struct Reply {
    int64_t number = 0;
    std::string value;
  };

  const LifelineOptions& options() const { return options_; }
  Address local() const { return local_; }
  void send(const Packer& frame);
  /// Sends a request built by `build(id)` and waits for its reply; nothing after the deadline, or when the
  /// run has failed and `despite_failure` is false.
  std::optional<Reply> ask(const std::function<Packer(int64_t id)>& build, std::chrono::milliseconds timeout,
                           bool despite_failure = false);
  std::optional<Failure> failure() const;
  std::optional<Failure> await_failure(std::chrono::milliseconds patience) const;
  void goodbye();
  void watch(LastResort last_resort, std::chrono::milliseconds patience);
  int listen(std::function<void()> listener);
  void unlisten(int id);
  /// What all halt for before this step, or 0; nothing when the run has failed.
  std::optional<int64_t> begin(int64_t step);
  std::atomic<int> waiting{0};

 private:
  using Clock = std::chrono::steady_clock;
  void greet();
  std::string hear(Deadline deadline);  ///< the next frame; throws CommError
  void run();
  void handle(const std::string& frame);
  void lost();
  void learn(const Failure& failure);
  void keep_watch(std::unique_lock<std::mutex>& lock);
  void wake();

  const LifelineOptions options_;
  const std::chrono::milliseconds beat_;
  const Socket wake_;
  Channel channel_;
  Address local_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<int64_t, std::optional<Reply>> replies_;  ///< by request; empty while it waits
  int64_t next_id_ = 0;
  int host_rank_ = -1;
  Status host_status_;
  std::optional<Failure> failure_;
  Clock::time_point learned_;
  LastResort last_resort_;
  std::chrono::milliseconds patience_{0};
  std::map<int, std::function<void()>> listeners_;
  int next_listener_ = 0;
  int64_t begun_ = 0;   ///< steps
  bool asked_ = false;  ///< how many; no other is begun before `meeting_` is known
  std::optional<Meeting> meeting_;
  bool over_ = false;      ///< goodbye said, or the server shut down cleanly
  bool stopping_ = false;  ///< the destructor waits
  std::thread thread_;
};

}  // namespace syncopate::lifeline
