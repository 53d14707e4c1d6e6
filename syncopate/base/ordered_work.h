#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace syncopate {

/// How many threads are worth having for work that keeps processors busy.
inline size_t worthwhile_threads() {
  constexpr unsigned kMost = 16;
  return std::clamp(std::thread::hardware_concurrency(), 1U, kMost);
}

/// Pieces of work done by several threads, their results used in the order the pieces came in, by the thread
/// that gives them. A few pieces are under way at any time, so memory is bounded. A failure is thrown by
/// add() or finish(), in its turn.
template <typename Piece, typename Result>
class OrderedWork {
 public:
  using Work = std::function<Result(Piece&)>;

  /// `make_work` is called once in each thread: what it gives may keep things from piece to piece.
  OrderedWork(size_t threads, std::function<Work()> make_work, std::function<void(Result)> use)
      : make_work_(std::move(make_work)), use_(std::move(use)), most_(2 * threads) {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~OrderedWork() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  void add(Piece piece) {
    while (results_.size() >= most_) use_first();
    Waiting waiting{.piece = std::move(piece), .result = {}};
    results_.push_back(waiting.result.get_future());
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(waiting));
    }
    changed_.notify_one();
  }

  void finish() {
    while (!results_.empty()) use_first();
  }

 private:
  void use_first() {
    std::future<Result> first = std::move(results_.front());
    results_.pop_front();
    use_(first.get());
  }

  void run() {
    const Work work = make_work_();
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return over_ || !waiting_.empty(); });
      if (over_) return;
      Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      try {
        next.result.set_value(work(next.piece));
      } catch (...) {
        next.result.set_exception(std::current_exception());
      }
      next = {};  // frees the piece before the next one
      lock.lock();
    }
  }

  struct Waiting {
    Piece piece;
    std::promise<Result> result;
  };

  std::function<Work()> make_work_;
  std::function<void(Result)> use_;
  size_t most_;
  std::deque<std::future<Result>> results_;
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace syncopate
