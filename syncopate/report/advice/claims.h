#pragma once

#include "syncopate/report/advice/arm_group.h"

namespace syncopate::report {

/// A loss of quality that nobody would pay for: one point of a measure in per cent, 2 % of another.
double tolerated_loss(const Measure& measure, double baseline);

/// What the seeds of a group's arms carry, and no more: speed against its slow arm, quality against its base.
/// The group must be comparable, and outlive it.
class Claims {
 public:
  explicit Claims(const ArmGroup& group);

  const ArmGroup& group() const { return group_; }

  bool timed(const ArmResult& arm) const;  ///< its timing counts, and the slow arm's
  /// Whether its speed-up stands, whatever others did on the machine.
  bool faster(const ArmResult& arm) const;
  /// Whether it may be faster, but not so that one could claim it.
  bool perhaps_faster(const ArmResult& arm) const;
  /// Whether the seeds say that the one is faster than the other, even if that had had a quiet machine.
  bool told_apart(const ArmResult& winner, const ArmResult& arm) const;

  double loss_limit() const;
  double loss(double difference) const;  ///< a difference as a loss
  /// Whether the interval of its difference leaves no loss that matters.
  bool keeps_quality(const ArmResult& arm) const;
  bool is_worse(const ArmResult& arm) const;
  /// Whether it is better beyond what chance does among so many arms.
  bool is_better(const ArmResult& arm) const;
  /// Arms that are better by their own interval alone.
  const Arms& seemingly_better() const { return seemingly_better_; }

  /// Arms whose speeds differ by less than this are called equally fast.
  static constexpr double kNoStep = 0.02;

 private:
  double stolen(const ArmResult& arm) const;

  const ArmGroup& group_;
  Arms better_, seemingly_better_;
};

}  // namespace syncopate::report
