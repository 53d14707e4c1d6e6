#include "syncopate/data/loader.h"

#include <algorithm>
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
  if (options.threads < 1) throw ConfigError("threads must be 1 or more, got {}", options.threads);
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
      sampler_(size_of(dataset_), options_.global_batch, options_.seed, options_.shuffle) {
  if (options_.sticky) sampler_.keep_homes(options_.workers);
  if (options_.arrange != Arrange::kInOrder) {
    sampler_.arrange(options_.arrange, [this](int64_t id) { return cost_of(dataset_->length(id)); });
  }
  try {
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { prepare_ahead(); });
  } catch (...) {  // the system gives no more threads
    stop();
    throw;
  }
}

Loader::~Loader() { stop(); }

void Loader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::map<int64_t, Loader::Prepared> Loader::start_over(int64_t step) {
  ++generation_;
  given_ = upcoming_ = step;
  requested_.clear();
  begun_ = 0;
  failed_ = false;
  return std::exchange(ready_, {});
}

void Loader::seek(int64_t step) {
  check(step >= 0, "steps count from 0");
  std::map<int64_t, Prepared> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped = start_over(step);
  }
  changed_.notify_all();
}

void Loader::set_shares(std::vector<int64_t> shares) {
  check(shares.empty() || shares.size() == static_cast<size_t>(options_.workers), "one share per worker");
  check(!options_.on_demand, "workers that take batches on demand have no shares");
  std::map<int64_t, Prepared> dropped;
  {
    const std::lock_guard lock(mutex_);
    shares_ = std::move(shares);
    dropped = start_over(given_);
  }
  changed_.notify_all();
}

void Loader::request(int64_t step) {
  check(options_.on_demand && step >= 0, "steps are requested of a loader that prepares on demand");
  {
    const std::lock_guard lock(mutex_);
    requested_.push_back(step);
  }
  changed_.notify_all();
}

int64_t Loader::next_given() const { return options_.on_demand ? requested_.front() : given_; }

bool Loader::work_waits() const {
  if (failed_) return false;
  if (options_.on_demand) return begun_ < requested_.size();
  return upcoming_ < given_ + std::max(options_.prefetch, options_.threads);
}

int64_t Loader::take_work() { return options_.on_demand ? requested_[begun_++] : upcoming_++; }

StepBatches Loader::next() {
  const Stopwatch watch;
  std::unique_lock lock(mutex_);
  check(!options_.on_demand || !requested_.empty(), "a step was requested");
  const int64_t step = next_given();
  if (!ready_.contains(step)) {
    changed_.wait(lock, [&] { return ready_.contains(step); });
    waited_ += watch.seconds();
  }
  const auto found = ready_.find(step);
  if (found->second.failure) std::rethrow_exception(found->second.failure);
  StepBatches batches = std::move(found->second.batches);
  ready_.erase(found);
  ++given_;
  if (options_.on_demand) {
    requested_.pop_front();
    --begun_;
  }
  lock.unlock();
  changed_.notify_all();
  return batches;
}

void Loader::prepare_ahead() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || work_waits(); });
    if (stopping_) return;
    const int64_t generation = generation_;
    const int64_t step = take_work();
    const std::vector<int64_t> shares = shares_;
    lock.unlock();
    Prepared prepared;
    try {
      prepared.batches = prepare(step, shares);
    } catch (...) {
      prepared.failure = std::current_exception();
    }
    lock.lock();
    if (generation != generation_) continue;
    if (prepared.failure) failed_ = true;
    ready_.emplace(step, std::move(prepared));
    changed_.notify_all();
  }
}

int64_t Loader::load_of(int64_t id) const {
  return options_.arrange == Arrange::kAcrossWorkers ? cost_of(dataset_->length(id)) : 1;
}

StepBatches Loader::prepare(int64_t step, const std::vector<int64_t>& shares) {
  StepBatches batches{.step = step,
                      .epoch = sampler_.epoch_of(step),
                      .last_of_epoch = sampler_.last_of_epoch(step),
                      .micro = {},
                      .global_examples = sampler_.examples_in(step),
                      .load = 0};
  std::vector<std::vector<int64_t>> micro;
  {
    const std::lock_guard lock(sampler_mutex_);
    micro = sampler_.micro_batches(step, options_.workers, options_.rank, options_.accumulate, shares);
  }
  const uint64_t draw = mix_key(options_.seed, kDrawStream, batches.epoch);
  for (const auto& ids : micro) {
    if (ids.empty() && !options_.keep_empty) continue;
    for (const int64_t id : ids) batches.load += load_of(id);
    tensor::Batch batch = dataset_->collate(ids, draw);
    if (batch.ids.empty()) batch.ids = ids;
    check(batch.ids == ids, "a batch holds the examples that were asked for");
    batches.micro.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace syncopate::data
