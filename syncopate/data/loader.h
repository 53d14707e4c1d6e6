#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "syncopate/data/dataset.h"
#include "syncopate/data/sampler.h"
#include "syncopate/tensor/batch.h"

namespace syncopate::data {

struct LoaderOptions {
  int64_t global_batch = 0;  ///< examples per optimizer step, over all workers
  int workers = 1;
  int rank = 0;        ///< which of the workers this is
  int accumulate = 1;  ///< micro-batches per optimizer step
  uint64_t seed = 0;
  bool shuffle = true;      ///< false: file order
  int prefetch = 4;         ///< steps prepared ahead, one per thread at least
  int threads = 1;          ///< that prepare; what they give does not depend on their number
  bool on_demand = false;   ///< prepares the steps that request() names, and no others
  bool keep_empty = false;  ///< a micro-batch without examples is a batch of size 0 instead of none
  /// An example comes back to the worker that had it in the first epoch, as far as the workers' shares of a
  /// step allow: for what is remembered per example and worker. The global batches stay as they are.
  bool sticky = false;
  /// Of examples that differ in length (Dataset::length); not with sticky.
  Arrange arrange = Arrange::kInOrder;
};

/// What one worker computes on in one optimizer step.
struct StepBatches {
  int64_t step = 0;   ///< from 0, over all epochs
  int64_t epoch = 0;  ///< from 0
  bool last_of_epoch = false;
  /// Without empty ones: none at all when this worker has no example; with keep_empty always `accumulate`.
  std::vector<tensor::Batch> micro;
  int64_t global_examples = 0;  ///< over all workers: what a sum is divided by for the global mean
  /// What this worker computes on, in the unit of the workers' shares: examples, or their cost where they are
  /// arranged across workers.
  int64_t load = 0;
};

/// Hands out a worker's batches step by step, for ever, prepared ahead by background threads. What step k
/// holds is a function of the options, the shares and k: a run that seeks to k goes on as one that never
/// stopped.
/// One thread calls it.
class Loader {
 public:
  /// Throws ConfigError for options out of range, DataError when the data set is empty.
  Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  ~Loader();  ///< ends the threads; waits for the steps in the making at most
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t global_batch() const { return options_.global_batch; }
  int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }

  /// next() gives `step` (0 or more) and what follows it; what was prepared is dropped, an earlier failure
  /// forgotten.
  void seek(int64_t step);

  /// On demand: next() will give `step` after what was requested before; not one that is still to be given.
  void request(int64_t step);

  /// From the next step on the workers' parts of a global batch are in this proportion, one number each;
  /// none: equal, as at the start. All workers set the same before the same step. What was prepared is
  /// dropped.
  void set_shares(std::vector<int64_t> shares);

  /// The next step's batches. A failure while they were prepared is thrown here, after the steps before it
  /// were given, and again at every further call.
  StepBatches next();

  /// How long next() has waited for batches, in all: near 0 when data keep up with computing.
  double waited_seconds() const { return waited_; }

 private:
  /// What a thread made of a step: batches, or why there are none.
  struct Prepared {
    StepBatches batches;
    std::exception_ptr failure;
  };

  void prepare_ahead();
  bool work_waits() const;     ///< for a thread to do it
  int64_t take_work();         ///< the step to prepare
  int64_t next_given() const;  ///< the step that next() gives
  int64_t load_of(int64_t id) const;
  StepBatches prepare(int64_t step, const std::vector<int64_t>& shares);
  std::map<int64_t, Prepared> start_over(int64_t step);  ///< under the lock; what to free outside it
  void stop();

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
  std::mutex sampler_mutex_;  ///< guards the sampler's order of an epoch; its constants need no guard
  Sampler sampler_;
  double waited_ = 0;

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::map<int64_t, Prepared> ready_;  ///< by step; threads may overtake each other
  int64_t given_ = 0;                  ///< the step that next() gives
  int64_t upcoming_ = 0;               ///< the step to prepare next
  std::deque<int64_t> requested_;      ///< on demand: steps that next() is to give, in order
  size_t begun_ = 0;                   ///< on demand: of those, how many some thread has taken up
  bool failed_ = false;                ///< a failure is in ready_: nothing after it will be needed
  int64_t generation_ = 0;             ///< a seek starts a new one; what an older one made is dropped
  std::vector<int64_t> shares_;        ///< empty: equal
  bool stopping_ = false;

  std::vector<std::thread> threads_;  ///< last: they start when the rest is there
};

}  // namespace syncopate::data
