#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "syncopate/data/arrangement.h"

namespace syncopate::data {

/// The numbers begin..end-1.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Part `index` of 0..count-1 cut into `parts` contiguous shares whose sizes differ by at most one, larger
/// first.
Range share(int64_t count, int64_t parts, int64_t index);
/// Part `index` of 0..count-1 cut into contiguous shares in the proportion of `weights` (0 or more, not all
/// 0); exactly those where they add up to `count`.
Range share(int64_t count, std::span<const int64_t> weights, int64_t index);

/// The examples 0..size-1 in the order of an epoch: a function of (seed, epoch) alone, or file order.
std::vector<int64_t> epoch_order(int64_t size, uint64_t seed, int64_t epoch, bool shuffle);

/// Which examples an optimizer step uses. Steps count from 0 over all epochs; a global batch is the next
/// `global_batch` examples of the epoch's order, the last of an epoch what is left, so each example comes
/// once an epoch. The global batch does not depend on the number of workers, who take shares of it:
/// contiguous ones unless told to arrange or to keep_homes. Keeps the order of one epoch at hand: one thread
/// at a time.
class Sampler {
 public:
  /// Throws ConfigError unless `global_batch` is at least 1, DataError when there are no examples.
  Sampler(int64_t size, int64_t global_batch, uint64_t seed, bool shuffle);

  int64_t steps_per_epoch() const;
  int64_t epoch_of(int64_t step) const { return step / steps_per_epoch(); }
  bool last_of_epoch(int64_t step) const { return (step + 1) % steps_per_epoch() == 0; }
  int64_t examples_in(int64_t step) const;  ///< of the whole global batch

  /// The whole global batch.
  std::vector<int64_t> batch(int64_t step);

  /// The part of worker `rank` of `workers`, cut into `accumulate` micro-batches, some of which may be empty.
  /// Joined in the order of ranks they are batch(step), unless examples keep_homes or are arranged. `weights`
  /// holds one number per worker, what the workers' parts are in the proportion of; none: equal.
  std::vector<std::vector<int64_t>> micro_batches(int64_t step, int workers, int rank, int accumulate,
                                                  std::span<const int64_t> weights = {});

  /// From now on micro_batches of so many workers gives an example to the worker whose equal share of the
  /// first epoch it is in, as long as there is room in that worker's share of the step; who finds none goes
  /// where there is. Sizes stay as they were, and so does the order of examples within a part.
  void keep_homes(int workers);

  /// From now on micro_batches arranges the examples of a batch by what `cost` (1 or more) gives for their
  /// numbers; across workers, weights are shares of the cost then. Within a part they keep their order, and a
  /// batch of examples that all cost the same is not arranged. Not together with keep_homes.
  void arrange(Arrange how, std::function<int64_t(int64_t id)> cost);

 private:
  std::vector<int64_t> costs_of(const std::vector<int64_t>& ids) const;  ///< none: do not arrange
  std::vector<int64_t> part_of(const std::vector<int64_t>& whole, int workers, int rank,
                               std::span<const int64_t> weights) const;
  const std::vector<int64_t>& order(int64_t epoch);

  int64_t size_;
  int64_t global_batch_;
  uint64_t seed_;
  bool shuffle_;
  int64_t epoch_ = -1;  ///< whose order is in order_
  std::vector<int64_t> order_;
  int homes_ = 0;              ///< among how many workers; 0: examples have none
  std::vector<int32_t> home_;  ///< of each example
  Arrange arrange_ = Arrange::kInOrder;
  std::function<int64_t(int64_t)> cost_;
};

}  // namespace syncopate::data
