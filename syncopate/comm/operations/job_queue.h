#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace syncopate::comm {

/// Jobs that are done one after the other: by a thread of the queue's own, or by whoever waits for one, which
/// saves the way there and back. Where waiters do not help, only by the queue's own.
class JobQueue {
 public:
  struct Job {
    std::function<void(bool by_waiter)> work;
    bool done = false;
    std::exception_ptr error{};
    std::chrono::steady_clock::time_point ended{};
  };

  explicit JobQueue(bool waiters_help = true);
  ~JobQueue();  ///< jobs that nobody has begun are dropped; one under way must end soon
  std::shared_ptr<Job> push(std::function<void(bool by_waiter)> work);
  bool idle();  ///< all jobs are done
  /// Does what is before the job, and the job, in this thread, unless the queue's own is at it. Whether the
  /// job is done by the end of `patience`; throws its error.
  bool wait(Job& job, std::chrono::milliseconds patience);

 private:
  void run();
  bool do_next(std::unique_lock<std::mutex>& lock, bool by_waiter);

  const bool waiters_help_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;
  bool busy_ = false;  ///< somebody does the first
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace syncopate::comm
