#include "syncopate/data/loader.h"

#include <utility>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"

namespace syncopate::data {
namespace {

// Keeps what is random about examples apart from other streams drawn from the same seed.
constexpr uint64_t kDrawStream = 0x64726177;

LoaderOptions checked(const LoaderOptions& options) {
  if (options.workers < 1) throw ConfigError("workers must be 1 or more, got {}", options.workers);
  if (options.rank < 0 || options.rank >= options.workers) {
    throw ConfigError("rank must be 0 to {}, got {}", options.workers - 1, options.rank);
  }
  if (options.accumulate < 1) throw ConfigError("accumulate must be 1 or more, got {}", options.accumulate);
  if (options.prefetch < 1) throw ConfigError("prefetch must be 1 or more, got {}", options.prefetch);
  return options;
}

int64_t size_of(const std::shared_ptr<const Dataset>& dataset) {
  check(dataset != nullptr, "a loader has a data set");
  return dataset->size();
}

}  // namespace

Loader::Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : dataset_(std::move(dataset)),
      options_(checked(options)),
      sampler_(size_of(dataset_), options_.global_batch, options_.seed, options_.shuffle),
      thread_([this] { prepare_ahead(); }) {}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Loader::seek(int64_t step) {
  check(step >= 0, "steps count from 0");
  std::deque<StepBatches> dropped;  // freed outside the lock
  {
    const std::lock_guard lock(mutex_);
    ++generation_;
    upcoming_ = step;
    failure_ = nullptr;
    dropped.swap(ready_);
  }
  changed_.notify_all();
}

StepBatches Loader::next() {
  const Stopwatch watch;
  std::unique_lock lock(mutex_);
  if (ready_.empty() && !failure_) {
    changed_.wait(lock, [this] { return !ready_.empty() || failure_; });
    waited_ += watch.seconds();
  }
  if (ready_.empty()) std::rethrow_exception(failure_);
  StepBatches batches = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return batches;
}

void Loader::prepare_ahead() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] {
      return stopping_ || (!failure_ && ready_.size() < static_cast<size_t>(options_.prefetch));
    });
    if (stopping_) return;
    const int64_t generation = generation_;
    const int64_t step = upcoming_++;
    lock.unlock();
    StepBatches batches;
    std::exception_ptr failure;
    try {
      batches = prepare(step);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (generation != generation_) continue;
    if (failure) {
      failure_ = failure;
    } else {
      ready_.push_back(std::move(batches));
    }
    changed_.notify_all();
  }
}

StepBatches Loader::prepare(int64_t step) {
  StepBatches batches{.step = step,
                      .epoch = sampler_.epoch_of(step),
                      .last_of_epoch = sampler_.last_of_epoch(step),
                      .micro = {},
                      .global_examples = sampler_.examples_in(step)};
  const uint64_t draw = mix_key(options_.seed, kDrawStream, batches.epoch);
  for (const auto& ids : sampler_.micro_batches(step, options_.workers, options_.rank, options_.accumulate)) {
    if (!ids.empty()) batches.micro.push_back(dataset_->collate(ids, draw));
  }
  return batches;
}

}  // namespace syncopate::data
