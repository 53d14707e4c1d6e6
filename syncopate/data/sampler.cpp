#include "syncopate/data/sampler.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

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
  const std::vector<int64_t> mine = part_of(batch(step), workers, rank, weights);
  if (const std::vector<int64_t> costs = costs_of(mine); !costs.empty()) {
    std::vector<std::vector<int64_t>> micro(static_cast<size_t>(accumulate));
    const std::vector<int> part = cut_by_cost(costs, accumulate);
    for (size_t i = 0; i < mine.size(); ++i) micro[static_cast<size_t>(part[i])].push_back(mine[i]);
    return micro;
  }
  std::vector<std::vector<int64_t>> micro;
  for (int k = 0; k < accumulate; ++k) {
    const Range part = share(static_cast<int64_t>(mine.size()), accumulate, k);
    micro.emplace_back(mine.begin() + part.begin, mine.begin() + part.end);
  }
  return micro;
}

std::vector<int64_t> Sampler::part_of(const std::vector<int64_t>& whole, int workers, int rank,
                                      std::span<const int64_t> weights) const {
  if (arrange_ == Arrange::kAcrossWorkers) {
    if (const std::vector<int64_t> costs = costs_of(whole); !costs.empty()) {
      const std::vector<int64_t> equal(static_cast<size_t>(workers), 1);
      const std::vector<int> worker_of = deal(costs, weights.empty() ? equal : weights);
      std::vector<int64_t> mine;
      for (size_t i = 0; i < whole.size(); ++i) {
        if (worker_of[i] == rank) mine.push_back(whole[i]);
      }
      return mine;
    }
  }
  const auto count = static_cast<int64_t>(whole.size());
  const auto share_of = [&](int worker) {
    return weights.empty() ? share(count, workers, worker) : share(count, weights, worker);
  };
  if (homes_ != workers) {
    const Range mine = share_of(rank);
    return {whole.begin() + mine.begin, whole.begin() + mine.end};
  }
  std::vector<int64_t> room;
  for (int worker = 0; worker < workers; ++worker) room.push_back(share_of(worker).size());
  std::vector<size_t> worker_of(whole.size(), room.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    const auto home = static_cast<size_t>(home_[static_cast<size_t>(whole[i])]);
    if (room[home] > 0) {
      worker_of[i] = home;
      --room[home];
    }
  }
  std::vector<int64_t> mine;
  size_t free = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (worker_of[i] == room.size()) {
      while (room[free] == 0) ++free;
      worker_of[i] = free;
      --room[free];
    }
    if (worker_of[i] == static_cast<size_t>(rank)) mine.push_back(whole[i]);
  }
  return mine;
}

std::vector<int64_t> Sampler::costs_of(const std::vector<int64_t>& ids) const {
  if (arrange_ == Arrange::kInOrder) return {};
  std::vector<int64_t> costs;
  costs.reserve(ids.size());
  for (const int64_t id : ids) costs.push_back(cost_(id));
  const bool alike = std::adjacent_find(costs.begin(), costs.end(), std::not_equal_to<>()) == costs.end();
  return alike ? std::vector<int64_t>() : costs;
}

void Sampler::arrange(Arrange how, std::function<int64_t(int64_t id)> cost) {
  check(homes_ == 0, "examples that are at home somewhere stay there");
  arrange_ = how;
  cost_ = std::move(cost);
}

void Sampler::keep_homes(int workers) {
  check(arrange_ == Arrange::kInOrder, "examples that are arranged have no home");
  check(workers >= 1, "examples are at home with somebody");
  homes_ = workers;
  home_.resize(static_cast<size_t>(size_));
  const std::vector<int64_t> first = epoch_order(size_, seed_, 0, shuffle_);
  for (int64_t step = 0; step < steps_per_epoch(); ++step) {
    for (int worker = 0; worker < workers; ++worker) {
      const Range part = share(examples_in(step), workers, worker);
      for (int64_t i = part.begin; i < part.end; ++i) {
        home_[static_cast<size_t>(first[static_cast<size_t>(step * global_batch_ + i)])] = worker;
      }
    }
  }
}

}  // namespace syncopate::data
