#pragma once

#include <cstdint>
#include <functional>

#include "syncopate/plan/problem.h"

namespace syncopate::plan {

/// Of a stage: they are paired with those of the next (matching.cpp).
inline constexpr int kMostReplicas = 1024;

struct Effort {
  uint64_t seed = 1;
  /// 0: a number of moves that depends on the problem alone, so that a seed gives one answer on every
  /// machine. Else rounds go on until so many seconds have passed.
  double budget_s = 0;
  double share = 1;  ///< of the moves, where many problems are searched
};

struct Found {
  Layout layout{};
  Cost cost{};
  int64_t moves = 0;
};

/// The best layout that annealing finds from layouts that follow the network's clusters and from random
/// ones. One core.
Found search(const Problem& problem, const Effort& effort);

/// A layout that knows nothing: devices in random order.
Layout random_layout(const Problem& problem, uint64_t seed);
/// The mean cost of `count` of them, replicas and stages as they fall.
double random_cost(const Problem& problem, int count, uint64_t seed);

}  // namespace syncopate::plan
