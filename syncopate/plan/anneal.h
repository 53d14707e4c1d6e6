#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "syncopate/base/rng.h"
#include "syncopate/plan/board.h"

namespace syncopate::plan {

/// The best places seen, and their cost.
struct Best {
  std::vector<int> places{};
  double cost = 0;
  void offer(const Board& board);
  void offer(const Best& other);
};

/// Less than rounding could make it; of equals the first, most regular one stays.
constexpr double kLess = 1 - 1e-6;

struct Schedule {
  double hot = 0.05, cold = 1e-4;  ///< temperatures, as shares of the cost
  /// What the mean weighs beside the slowest: much at first, for max() is flat where most layouts are.
  double mean_hot = 20, mean_cold = 0.05;
  Mean mean = Mean::kFourthPowers;
  int64_t moves = 0;
};

/// Improves layouts by exchanging devices.
class Annealer {
 public:
  /// Ends early, with what it has, once `spent`.
  Annealer(const Tables& tables, uint64_t seed, std::function<bool()> spent)
      : tables_(tables), problem_(tables.problem()), rng_(seed), spent_(std::move(spent)) {}

  Best anneal(const std::vector<int>& places, const Schedule& schedule);
  /// Exchanges any two places while that helps; only puts many devices in order.
  void descend(Board& board);
  int64_t& moves() { return moves_; }  ///< exchanges looked at
  Rng& rng() { return rng_; }

 private:
  void move(Board& board, double temperature, double weight);
  int stretch(const Board& board, int a, int b, uint64_t bits) const;

  const Tables& tables_;
  const Problem& problem_;
  Rng rng_;
  std::function<bool()> spent_;
  int64_t moves_ = 0;
};

}  // namespace syncopate::plan
