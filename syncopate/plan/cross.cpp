#include "syncopate/plan/cross.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace syncopate::plan {
namespace {

/// What stays together of each stage of `places`.
std::vector<std::vector<int>> unused(const std::vector<int>& places, const std::vector<bool>& used,
                                     const Problem& problem) {
  std::vector<std::vector<int>> groups(at(problem.stages));
  for (int place = 0; place < problem.places(); ++place) {
    const int device = places[at(place)];
    if (!used[at(device)]) groups[at(place / problem.replicas)].push_back(device);
  }
  return groups;
}

/// Puts the nearest device of `pool` and the group that it is nearest to together, until all are full.
void fill(const Tables& tables, const std::vector<int>& stages, std::vector<std::vector<int>>& groups,
          std::vector<int>& pool) {
  const auto replicas = at(tables.problem().replicas);
  std::vector<std::vector<float>> sum(stages.size(), std::vector<float>(pool.size(), 0.F));
  const auto join = [&](size_t g, int device) {
    const float* row = tables.exchange(stages[g], device);
    for (size_t k = 0; k < pool.size(); ++k) sum[g][k] += row[pool[k]];
  };
  for (size_t g = 0; g < stages.size(); ++g) {
    for (const int device : groups[g]) join(g, device);
  }
  std::vector<bool> gone(pool.size());
  for (;;) {
    float least = std::numeric_limits<float>::infinity();
    size_t group = 0, chosen = 0;
    for (size_t g = 0; g < stages.size(); ++g) {
      if (groups[g].size() == replicas) continue;
      const float share = 1 / static_cast<float>(std::max<size_t>(groups[g].size(), 1));
      for (size_t k = 0; k < pool.size(); ++k) {
        if (gone[k] || sum[g][k] * share >= least) continue;
        least = sum[g][k] * share;
        group = g;
        chosen = k;
      }
    }
    if (least == std::numeric_limits<float>::infinity()) break;
    gone[chosen] = true;
    groups[group].push_back(pool[chosen]);
    join(group, pool[chosen]);
  }
  std::vector<int> rest;
  for (size_t k = 0; k < pool.size(); ++k) {
    if (!gone[k]) rest.push_back(pool[k]);
  }
  pool = std::move(rest);
}

}  // namespace

std::vector<int> crossed(const Tables& tables, const std::vector<int>& one, const std::vector<int>& other,
                         Rng& rng) {
  const Problem& problem = tables.problem();
  const int stages = problem.stages, replicas = problem.replicas;
  // Two stages at least come from the other: the last one would get what `one` has there.
  const int kept = 1 + static_cast<int>(rng.below(at(std::max(1, stages - 2))));
  const int first = static_cast<int>(rng.below(at(stages - kept + 1)));
  std::vector<bool> used(at(problem.devices()));
  for (int place = first * replicas; place < (first + kept) * replicas; ++place)
    used[at(one[at(place)])] = true;
  std::vector<std::vector<int>> groups = unused(other, used, problem);

  // Stages that are alike may come from any place; others keep theirs.
  std::vector<int> order(at(stages));
  std::iota(order.begin(), order.end(), 0);
  if (tables.even()) {
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return groups[at(a)].size() > groups[at(b)].size(); });
    order.resize(at(stages - kept));
    std::sort(order.begin(), order.end());
  } else {
    std::erase_if(order, [&](int stage) { return stage >= first && stage < first + kept; });
  }
  std::vector<int> open;  // stages of the new layout that `order`'s groups get
  std::vector<std::vector<int>> chosen;
  for (int stage = 0; stage < stages; ++stage) {
    if (stage < first || stage >= first + kept) open.push_back(stage);
  }
  for (const int stage : order) {
    chosen.push_back(groups[at(stage)]);
    for (const int device : groups[at(stage)]) used[at(device)] = true;
  }
  std::vector<int> pool;
  for (const int device : other) {
    if (!used[at(device)]) pool.push_back(device);
  }
  fill(tables, open, chosen, pool);

  std::vector<int> places = one;
  for (size_t k = 0; k < open.size(); ++k)
    std::copy(chosen[k].begin(), chosen[k].end(), places.begin() + open[k] * replicas);
  std::copy(pool.begin(), pool.end(), places.begin() + problem.places());
  return places;
}

}  // namespace syncopate::plan
