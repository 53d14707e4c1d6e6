#include "syncopate/plan/starts.h"

#include <algorithm>
#include <limits>
#include <set>

namespace syncopate::plan {
namespace {

std::vector<int> divisors(int n) {
  std::vector<int> all;
  for (int k = 1; k <= n; ++k) {
    if (n % k == 0) all.push_back(k);
  }
  return all;
}

}  // namespace

std::vector<int> by_nearness(const Pairs& pairs, double gb) {
  // Average linkage by chains of nearest neighbours: two clusters that are each other's nearest are joined.
  const int n = pairs.devices();
  std::vector<float> distance(at(n) * at(n), 0.F);
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      const Pair &there = pairs.at(a, b), &back = pairs.at(b, a);
      distance[at(a) * at(n) + at(b)] =
          static_cast<float>(there.delay_s + back.delay_s + gb * (there.s_per_gb + back.s_per_gb));
    }
  }
  std::vector<std::vector<int>> members(at(n));
  std::vector<int> alive;
  for (int a = 0; a < n; ++a) {
    members[at(a)] = {a};
    alive.push_back(a);
  }
  std::vector<int> chain;
  while (alive.size() > 1) {
    if (chain.empty()) chain.push_back(alive.front());
    const int last = chain.back(), previous = chain.size() > 1 ? chain[chain.size() - 2] : -1;
    const float* row = distance.data() + at(last) * at(n);
    int nearest = previous;  // which wins ties, or the chain would go in circles
    float least = previous >= 0 ? row[previous] : std::numeric_limits<float>::infinity();
    for (const int other : alive) {
      if (other != last && row[other] < least) {
        least = row[other];
        nearest = other;
      }
    }
    if (nearest != previous) {
      chain.push_back(nearest);
      continue;
    }
    chain.resize(chain.size() - 2);
    const int keep = std::min(last, previous), gone = std::max(last, previous);
    const auto weight_keep = static_cast<float>(members[at(keep)].size());
    const auto weight_gone = static_cast<float>(members[at(gone)].size());
    for (const int other : alive) {
      if (other == keep || other == gone) continue;
      const float joined = (weight_keep * distance[at(keep) * at(n) + at(other)] +
                            weight_gone * distance[at(gone) * at(n) + at(other)]) /
                           (weight_keep + weight_gone);
      distance[at(keep) * at(n) + at(other)] = joined;
      distance[at(other) * at(n) + at(keep)] = joined;
    }
    members[at(keep)].insert(members[at(keep)].end(), members[at(gone)].begin(), members[at(gone)].end());
    alive.erase(std::find(alive.begin(), alive.end(), gone));
  }
  return members[at(alive.front())];
}

std::vector<std::vector<int>> tiled(const std::vector<int>& devices, int stages, int replicas) {
  std::set<std::vector<int>> all;  // without repetitions
  for (const int high : divisors(stages)) {
    for (const int wide : divisors(replicas)) {
      for (const bool along_stages : {false, true}) {
        for (const bool inner_along_stages : {false, true}) {
          std::vector<int> places(devices.size(), -1);
          const int rows = stages / high, columns = replicas / wide;
          size_t next = 0;
          for (int tile = 0; tile < rows * columns; ++tile) {
            const int row = along_stages ? tile % rows : tile / columns;
            const int column = along_stages ? tile / rows : tile % columns;
            for (int cell = 0; cell < high * wide; ++cell) {
              const int stage = row * high + (inner_along_stages ? cell % high : cell / wide);
              const int replica = column * wide + (inner_along_stages ? cell / high : cell % wide);
              places[at(stage * replicas + replica)] = devices[next++];
            }
          }
          for (size_t k = next; k < devices.size(); ++k) places[k] = devices[k];
          all.insert(std::move(places));
        }
      }
    }
  }
  return {all.begin(), all.end()};
}

}  // namespace syncopate::plan
