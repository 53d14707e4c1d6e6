#pragma once

#include <optional>
#include <string>
#include <vector>

#include "syncopate/report/reading/read_sweep.h"
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
  std::vector<size_t> candidates{};                 ///< arms that others may be compared with
  std::vector<bool> barred{};                       ///< by arm: failed its checks, so no base for others

  const RunData* done_run(size_t arm, int64_t seed) const;  ///< null: that seed has not finished
  const RunData* any_done(size_t arm) const;
  /// The finished control of an arm, with its batch and updates; kNone: it has none.
  size_t control_of(size_t arm) const;
  bool differs_allowed(std::string_view check) const;  ///< the experiment says that it may differ
};

/// Examples in an update; 0: it made none.
double batch_of(const record::RunRecord& record);
bool nearly_equal(double a, double b);  ///< within 2 %

// runs.cpp
RunResult result_of(const RunData& run);
// arms.cpp
void make_runs_and_arms(Comparison& of);
// arm_names.cpp
/// Strategy and codec. `mixed`: some runs were simulated, others measured.
std::string label_of(const RunResult& run, bool mixed);
/// Tells arms of the same name apart by the settings in which they differ.
void name_arms(Results& results);
// measure.cpp
void choose_measure(Comparison& of);
// networks.cpp
void place_arms(Comparison& of);  ///< who was simulated, and on which network an arm's workers sat
void note_networks(Comparison& of);
/// Whether speeds of the two can be compared: one worker needs no network, others need the same one.
bool same_network(const ArmResult& arm, const ArmResult& base);
/// The networks of arms of several workers, each once.
std::vector<NetworkName> networks_in(const std::vector<const ArmResult*>& arms);
// figures.cpp
void fill_figures(Comparison& of);
// bases.cpp
void choose_bases(Comparison& of);
void note_bases(Comparison& of);
// fairness/: checks.cpp, machine.cpp
void check_fairness(Comparison& of);
/// Whether others kept so much of the machine busy that its timing cannot be trusted.
bool busy(double outside_load, int64_t cores);
/// By what is recorded: the same processor, as many cores, the same kind of device.
bool same_machine(const record::RunRecord& a, const record::RunRecord& b);
// figures.cpp
void fill_speed(Comparison& of);
void say_speed(Comparison& of);  ///< in words, once it is known which timing counts
// over_time.cpp: what depends on evaluations while runs went on
void fill_over_time(Comparison& of);
// predictions.cpp
void find_predictions(Comparison& of);  ///< once it is known which timing counts
// scaling.cpp
void find_scaling(Comparison& of);
// collapse.cpp
void find_collapses(Comparison& of);
// differences.cpp
/// Seed by seed, of runs of two arms.
Difference quality_difference(const Measure& measure, const std::vector<const RunResult*>& ours,
                              const std::vector<const RunResult*>& theirs);
void compare_quality(Comparison& of);
// flags.cpp
void flag_timing(Comparison& of);
void raise_flags(Comparison& of);
// front.cpp
void find_front(Comparison& of);

}  // namespace syncopate::report
