#include "syncopate/data/arrangement.h"

#include <algorithm>
#include <numeric>

#include "syncopate/base/error.h"

namespace syncopate::data {
namespace {

/// Numbers of the examples by cost; those that cost the same in their order.
template <typename Before>
std::vector<size_t> sorted(std::span<const int64_t> costs, Before before) {
  std::vector<size_t> order(costs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return before(costs[a], costs[b]); });
  return order;
}

}  // namespace

int64_t cost_of(int64_t tokens) {
  // Where looking at the others costs as much as the rest of a layer, roughly: 6 widths for the products
  // alone, less since attention runs at a lower speed.
  constexpr int64_t kPairs = 1024;
  return std::max<int64_t>(1, tokens + tokens * tokens / kPairs);
}

std::vector<int> deal(std::span<const int64_t> costs, std::span<const int64_t> weights) {
  std::vector<int64_t> load(weights.size(), 0);
  const auto takes_part = [&](size_t worker) { return weights[worker] > 0; };
  int64_t without = 0;  // workers that have no example yet
  for (size_t worker = 0; worker < weights.size(); ++worker) without += takes_part(worker) ? 1 : 0;
  check(without > 0, "a batch is dealt to somebody");
  std::vector<int> worker_of(costs.size());
  auto left = static_cast<int64_t>(costs.size());
  for (const size_t example : sorted(costs, std::greater<>())) {
    const bool only_without = left-- <= without;
    size_t best = weights.size();
    for (size_t worker = 0; worker < weights.size(); ++worker) {
      if (!takes_part(worker) || (only_without && load[worker] > 0)) continue;
      const bool first = best == weights.size() || (load[worker] + costs[example]) * weights[best] <
                                                       (load[best] + costs[example]) * weights[worker];
      if (first) best = worker;
    }
    without -= load[best] == 0 ? 1 : 0;
    load[best] += costs[example];
    worker_of[example] = static_cast<int>(best);
  }
  return worker_of;
}

std::vector<int> cut_by_cost(std::span<const int64_t> costs, int parts) {
  check(parts >= 1, "a batch is cut into parts");
  const int64_t total = std::accumulate(costs.begin(), costs.end(), int64_t{0});
  const std::vector<size_t> order = sorted(costs, std::less<>());
  const auto count = static_cast<int64_t>(order.size());
  std::vector<int> part_of(costs.size());
  int64_t taken = 0, in_part = 0;
  int part = 0;
  for (int64_t i = 0; i < count; ++i) {
    const size_t example = order[static_cast<size_t>(i)];
    // Where most of it would lie behind the part's end it begins the next part; so it does where those that
    // are left are just enough for the parts that are left.
    const bool behind = (2 * taken + costs[example]) * parts >= 2 * total * (part + 1);
    if (in_part > 0 && part + 1 < parts && (behind || count - i <= parts - 1 - part)) {
      ++part;
      in_part = 0;
    }
    part_of[example] = part;
    taken += costs[example];
    ++in_part;
  }
  return part_of;
}

}  // namespace syncopate::data
