#include "syncopate/data/sampler.h"

#include <algorithm>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"

namespace syncopate::data {

// Keeps the order of examples apart from other random streams drawn from the same seed.
constexpr uint64_t kOrderStream = 0x6F72646572;

Range share(int64_t count, int64_t parts, int64_t index) {
  check(count >= 0 && parts >= 1 && index >= 0 && index < parts, "a share is one of the parts");
  const int64_t each = count / parts;
  const int64_t larger = count % parts;
  const int64_t begin = index * each + std::min(index, larger);
  return {begin, begin + each + (index < larger ? 1 : 0)};
}

Range share(int64_t count, std::span<const int64_t> weights, int64_t index) {
  const auto mine = weights.begin() + index;
  const int64_t before = std::accumulate(weights.begin(), mine, int64_t{0});
  const int64_t total = std::accumulate(mine, weights.end(), before);
  check(count >= 0 && total > 0, "a share is a part of something");
  return {count * before / total, count * (before + *mine) / total};
}

std::vector<int64_t> epoch_order(int64_t size, uint64_t seed, int64_t epoch, bool shuffle) {
  if (shuffle) return permutation(size, mix_key(seed, kOrderStream, epoch));
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

Sampler::Sampler(int64_t size, int64_t global_batch, uint64_t seed, bool shuffle)
    : size_(size), global_batch_(global_batch), seed_(seed), shuffle_(shuffle) {
  if (global_batch < 1)
    throw ConfigError("the global batch must hold 1 example or more, got {}", global_batch);
  if (size < 1) throw DataError("the data set has no examples to train on; check the data");
}

int64_t Sampler::steps_per_epoch() const { return (size_ - 1) / global_batch_ + 1; }

int64_t Sampler::examples_in(int64_t step) const {
  const int64_t begin = step % steps_per_epoch() * global_batch_;
  return std::min(global_batch_, size_ - begin);
}

const std::vector<int64_t>& Sampler::order(int64_t epoch) {
  if (epoch != epoch_) {
    order_ = epoch_order(size_, seed_, epoch, shuffle_);
    epoch_ = epoch;
  }
  return order_;
}

std::vector<int64_t> Sampler::batch(int64_t step) {
  check(step >= 0, "steps count from 0");
  const auto begin = order(epoch_of(step)).begin() + step % steps_per_epoch() * global_batch_;
  return {begin, begin + examples_in(step)};
}

std::vector<std::vector<int64_t>> Sampler::micro_batches(int64_t step, int workers, int rank, int accumulate,
                                                         std::span<const int64_t> weights) {
  const std::vector<int64_t> whole = batch(step);
  const auto count = static_cast<int64_t>(whole.size());
  const Range mine = weights.empty() ? share(count, workers, rank) : share(count, weights, rank);
  std::vector<std::vector<int64_t>> micro;
  for (int k = 0; k < accumulate; ++k) {
    const Range part = share(mine.size(), accumulate, k);
    micro.emplace_back(whole.begin() + mine.begin + part.begin, whole.begin() + mine.begin + part.end);
  }
  return micro;
}

}  // namespace syncopate::data
