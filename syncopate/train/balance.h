#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "syncopate/comm/group.h"

namespace syncopate::train {

struct BalanceOptions {
  int64_t first = 4;   ///< steps before the first look at the speeds; then twice as many, and so on
  int64_t every = 32;  ///< steps between looks once that many are done
  /// What a step of such a load is taken to have cost, in place of the clock's seconds; may be empty.
  std::function<double(int64_t load, double seconds)> cost{};
};

/// Shares of `total`, one or more each, such that workers of these speeds (above 0, at most 1e12) are done as
/// nearly at the same time as whole numbers allow.
std::vector<int64_t> shares_by_speed(std::span<const int64_t> speeds, int64_t total);

/// Gives every worker a share of the global batch that matches its speed, so that all are done at the same
/// time. Speed is load per second of a worker's own computing, the median over the steps since the last look;
/// all workers tell each other theirs and come to the same shares in whole numbers. Load is what shares are
/// shares of (data::StepBatches): examples, or tokens where texts are arranged by length. Of tokens a share
/// of 16 in a global batch of 64 examples is a quarter, be those 10 texts or 30.
///
/// A step has a part that does not shrink with the share (the update), so that shares in the proportion of
/// speeds are not quite right at once; those speeds are measured again with the new shares, and where looks
/// no longer change anything all workers take the same time. Noise must not make it swing: shares stay where
/// others would save less than a twentieth, and go half of the way where they would save less than a fifth.
class Balance {
 public:
  /// `group` must outlive it. Starts with equal shares.
  Balance(comm::Group& group, int64_t global_batch, BalanceOptions options);

  /// This rank computed for so long on such a load. The first step counts for nothing: it warms up.
  void measure(int64_t load, double seconds);
  /// After `steps_done` steps of the run. True: the shares changed. Collective: ranks talk where a look is
  /// due; one that has measured nothing since the last keeps all as they are.
  bool adjust(int64_t steps_done);

  const std::vector<int64_t>& shares() const { return shares_; }
  void restore(std::vector<int64_t> shares) { shares_ = std::move(shares); }

 private:
  bool due(int64_t steps_done) const;
  int64_t own_speed() const;  ///< thousandths of the load's unit per second; 0: unknown
  std::vector<int64_t> speeds();

  comm::Group& group_;
  int64_t global_batch_;
  BalanceOptions options_;
  std::vector<int64_t> shares_;
  std::vector<double> costs_;  ///< seconds per unit of load, by step since the last look
  bool warm_ = false;
};

}  // namespace syncopate::train
