#include "syncopate/train/balance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/data/sampler.h"

namespace syncopate::train {
namespace {

constexpr int64_t kFastest = 1'000'000'000'000;  // times a million fits 64 bits

/// Products of shares, speeds and per cent must fit 64 bits: the fastest becomes a million.
std::vector<int64_t> scaled(std::vector<int64_t> speeds) {
  constexpr int64_t kUnit = 1'000'000;
  const int64_t fastest = *std::max_element(speeds.begin(), speeds.end());
  for (int64_t& speed : speeds) speed = std::max<int64_t>(1, speed * kUnit / fastest);
  return speeds;
}

int64_t sum(std::span<const int64_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
}

/// Whether the slowest worker takes at least so many per cent longer than all would with ideal shares.
bool too_long(std::span<const int64_t> shares, std::span<const int64_t> speeds, int64_t per_cent) {
  const int64_t total = sum(shares), together = sum(speeds);
  for (size_t r = 0; r < shares.size(); ++r) {
    if (100 * shares[r] * together >= (100 + per_cent) * total * speeds[r]) return true;
  }
  return false;
}

}  // namespace

std::vector<int64_t> shares_by_speed(std::span<const int64_t> speeds, int64_t total) {
  check(total >= static_cast<int64_t>(speeds.size()), "a share for every worker");
  const std::vector<int64_t> unit = scaled({speeds.begin(), speeds.end()});
  const int64_t together = sum(unit);
  std::vector<int64_t> shares;
  for (const int64_t speed : unit) shares.push_back(std::max<int64_t>(1, total * speed / together));
  // What rounding left over goes, one by one, to whoever is done with it first.
  const auto before = [&](size_t a, size_t b, int64_t more) {
    return (shares[a] + more) * unit[b] < (shares[b] + more) * unit[a];
  };
  for (int64_t left = total - sum(shares); left > 0; --left) {
    size_t best = 0;
    for (size_t r = 1; r < shares.size(); ++r) best = before(r, best, 1) ? r : best;
    ++shares[best];
  }
  for (int64_t over = sum(shares) - total; over > 0; --over) {  // many were raised to one
    const auto largest = std::max_element(shares.begin(), shares.end());
    size_t last = static_cast<size_t>(largest - shares.begin());
    for (size_t r = 0; r < shares.size(); ++r) last = shares[r] > 1 && before(last, r, 0) ? r : last;
    --shares[last];
  }
  return shares;
}

Balance::Balance(comm::Group& group, int64_t global_batch, BalanceOptions options)
    : group_(group), global_batch_(global_batch), options_(std::move(options)) {
  check(options_.first >= 1 && options_.every >= 1, "looks are steps apart");
  for (int rank = 0; rank < group.size(); ++rank) {
    shares_.push_back(data::share(global_batch, group.size(), rank).size());
  }
}

void Balance::measure(int64_t load, double seconds) {
  if (!std::exchange(warm_, true) || load == 0) return;
  if (options_.cost) seconds = options_.cost(load, seconds);
  costs_.push_back(seconds / static_cast<double>(load));
}

bool Balance::due(int64_t steps_done) const {
  if (steps_done >= options_.every) return steps_done % options_.every == 0;
  int64_t look = options_.first;
  while (look < steps_done) look *= 2;
  return look == steps_done;
}

int64_t Balance::own_speed() const {
  if (costs_.empty()) return 0;
  std::vector<double> costs = costs_;
  const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
  std::nth_element(costs.begin(), middle, costs.end());
  const double speed = *middle > 0 ? std::min(1e3 / *middle, 1.0 * kFastest) : 1.0 * kFastest;
  return std::max<int64_t>(1, std::llround(speed));
}

std::vector<int64_t> Balance::speeds() {
  const at::Tensor mine = at::full({1}, own_speed(), at::kLong);
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < group_.size(); ++rank) all.push_back(at::zeros({1}, at::kLong));
  group_.all_gather(all, mine).wait();
  std::vector<int64_t> speeds;
  for (const at::Tensor& theirs : all) speeds.push_back(theirs.item<int64_t>());
  return speeds;
}

bool Balance::adjust(int64_t steps_done) {
  if (group_.size() == 1 || !due(steps_done)) return false;
  std::vector<int64_t> speeds = this->speeds();
  costs_.clear();
  if (std::find(speeds.begin(), speeds.end(), 0) != speeds.end()) return false;
  speeds = scaled(std::move(speeds));
  if (!too_long(shares_, speeds, 5)) return false;
  if (!too_long(shares_, speeds, 20)) {
    // Half of the way is where workers have speeds between what they seem and what the shares say.
    const int64_t together = sum(speeds), total = sum(shares_);
    for (size_t r = 0; r < speeds.size(); ++r) {
      speeds[r] = std::max<int64_t>(1, (speeds[r] + shares_[r] * together / total) / 2);
    }
  }
  std::vector<int64_t> shares = shares_by_speed(speeds, global_batch_);
  if (shares == shares_) return false;
  shares_ = std::move(shares);
  return true;
}

}  // namespace syncopate::train
