#include "syncopate/comm/mpi/post.h"

#include <algorithm>

#include "syncopate/base/error.h"

namespace syncopate::comm {

bool MpiPost::Letter::look() {
  const std::lock_guard lock(mutex);
  if (done) return true;
  try {
    done = calls.done();
  } catch (const CommError& complaint) {
    error = complaint.what();
    done = true;
  }
  if (done) ended = std::chrono::steady_clock::now();
  return done;
}

std::vector<int> MpiPost::Letter::awaited() {
  const std::lock_guard lock(mutex);
  return done ? std::vector<int>() : calls.awaited();
}

MpiPost::~MpiPost() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void MpiPost::add(std::shared_ptr<Letter> letter) {
  const std::lock_guard lock(mutex_);
  under_way_.push_back(std::move(letter));
  changed_.notify_one();
}

void MpiPost::work() {
  constexpr std::chrono::microseconds kBetweenLooks(100);
  std::unique_lock lock(mutex_);
  while (!closed_) {
    const auto arrived = std::remove_if(under_way_.begin(), under_way_.end(),
                                        [](const std::shared_ptr<Letter>& letter) { return letter->look(); });
    under_way_.erase(arrived, under_way_.end());
    if (under_way_.empty()) {
      changed_.wait(lock, [&] { return closed_ || !under_way_.empty(); });
    } else {
      changed_.wait_for(lock, kBetweenLooks, [&] { return closed_; });
    }
  }
}

}  // namespace syncopate::comm
