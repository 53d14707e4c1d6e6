#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "syncopate/report/results.h"

namespace syncopate::report {

using Arms = std::vector<const ArmResult*>;
using RunsById = std::unordered_map<std::string_view, const RunResult*>;

/// Arms that learn the same from the same data, on one network where there are several, and what became of
/// their runs. It owns none of them: the results and their runs must outlive it.
class ArmGroup {
 public:
  /// The arms of a group that were trained; with a network, those on it and those of one worker.
  ArmGroup(const Results& results, const RunsById& runs, int64_t group, const NetworkName* network);

  const Results& results() const { return results_; }
  /// All of them, whatever became of them.
  const Arms& all() const { return all_; }
  /// Those that can be compared: they finished, passed their checks and are no controls.
  const Arms& compared() const { return compared_; }
  /// The one that quality is compared with, itself one of `compared`; null: there is none.
  const ArmResult* base() const { return base_; }
  /// The one that speed is measured against; null where there is no base.
  const ArmResult* slow() const { return slow_; }
  std::string slow_name() const;                             ///< "one worker" where it is one
  const Measure& measure() const { return base_->measure; }  ///< the base's: there must be one

  /// Whether anything can be said: there is a base, and something to compare with it.
  bool comparable() const { return base_ != nullptr && compared_.size() > 1; }

  std::vector<const RunResult*> runs_of(const ArmResult& arm) const;

  // Seeds that went wrong.
  std::vector<std::string> diverged(const ArmResult& arm) const;
  std::vector<std::string> failed(const ArmResult& arm) const;
  std::vector<std::string> collapsed(const ArmResult& arm) const;
  /// Why a mean over its seeds is not to be trusted: "seed 2 diverged"; empty: nothing went wrong.
  std::string trouble(const ArmResult& arm) const;
  bool sound(const ArmResult& arm) const { return trouble(arm).empty(); }

 private:
  template <typename Holds>
  std::vector<std::string> seeds_where(const ArmResult& arm, const Holds& holds) const;

  const Results& results_;
  const RunsById& runs_;
  Arms all_, compared_;
  const ArmResult *base_ = nullptr, *slow_ = nullptr;
};

}  // namespace syncopate::report
