#include "syncopate/comm/operations/job_queue.h"

#include <utility>

namespace syncopate::comm {

JobQueue::JobQueue(bool waiters_help) : waiters_help_(waiters_help), thread_([this] { run(); }) {}

JobQueue::~JobQueue() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

std::shared_ptr<JobQueue::Job> JobQueue::push(std::function<void(bool by_waiter)> work) {
  auto job = std::make_shared<Job>(Job{.work = std::move(work)});
  const std::lock_guard lock(mutex_);
  jobs_.push_back(job);
  if (!busy_) changed_.notify_all();
  return job;
}

/// Lets go of the lock while the job is done.
bool JobQueue::do_next(std::unique_lock<std::mutex>& lock, bool by_waiter) {
  if (busy_ || jobs_.empty()) return false;
  const std::shared_ptr<Job> job = jobs_.front();
  busy_ = true;
  lock.unlock();
  try {
    job->work(by_waiter);
  } catch (...) {
    job->error = std::current_exception();
  }
  lock.lock();
  busy_ = false;
  jobs_.pop_front();
  job->work = {};  // and the tensors that it holds
  job->done = true;
  job->ended = std::chrono::steady_clock::now();
  changed_.notify_all();
  return true;
}

bool JobQueue::idle() {
  const std::lock_guard lock(mutex_);
  return jobs_.empty();
}

bool JobQueue::wait(Job& job, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!job.done) {
    if (waiters_help_ && do_next(lock, true)) continue;
    if (changed_.wait_until(lock, until) == std::cv_status::timeout && !job.done) return false;
  }
  if (job.error) std::rethrow_exception(job.error);
  return true;
}

void JobQueue::run() {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    if (!do_next(lock, false)) changed_.wait(lock);
  }
}

}  // namespace syncopate::comm
