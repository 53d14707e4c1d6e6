#pragma once

#include <optional>
#include <string>
#include <vector>

#include "syncopate/report/read_sweep.h"
#include "syncopate/report/results.h"

// The steps of an analysis, in their order (analyse.cpp). For this room alone.
namespace syncopate::report {

/// A comparison while it is analysed.
struct Comparison {
  static constexpr size_t kNone = static_cast<size_t>(-1);

  const SweepData& sweep;
  Results results{};
  std::vector<std::vector<const RunData*>> runs{};  ///< of each arm, in the order of its `runs`
  std::vector<std::vector<size_t>> places{};        ///< the same runs in results.runs
  std::vector<size_t> quality_base{};               ///< by arm: the arm that its quality is compared with
  std::vector<size_t> speed_base{};                 ///< by arm: the one that its speed is

  const RunData* done_run(size_t arm, int64_t seed) const;  ///< null: that seed has not finished
  const RunData* any_done(size_t arm) const;
  bool differs_allowed(std::string_view check) const;  ///< the experiment says that it may differ
};

// arms.cpp
void make_runs_and_arms(Comparison& of);
void choose_measure(Comparison& of);
// bases.cpp
void choose_bases(Comparison& of);
// figures.cpp
void fill_figures(Comparison& of);
void fill_speed(Comparison& of);
// over_time.cpp: what depends on evaluations while runs went on
void fill_over_time(Comparison& of);
// scaling.cpp
void find_scaling(Comparison& of);
// checks.cpp
void check_fairness(Comparison& of);
/// Whether others kept so much of the machine busy that its timing cannot be trusted.
bool busy(double outside_load, int64_t cores);
// collapse.cpp
void find_collapses(Comparison& of);
// flags.cpp
void compare_quality(Comparison& of);
void raise_flags(Comparison& of);
void find_front(Comparison& of);

}  // namespace syncopate::report
