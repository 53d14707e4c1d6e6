#pragma once

#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/lab/experiment.h"
#include "syncopate/lab/tuning.h"

// The runs of an experiment and where each stands; sweep.json is this, written down.
namespace syncopate::lab {

enum class RunKind { kPhase, kTune, kRow, kControl };
enum class RunState { kPlanned, kRunning, kDone, kDiverged, kFailed, kKilled, kStopped };

std::string name_of(RunKind kind);
std::string name_of(RunState state);

struct SweepRun {
  std::string id;  ///< "r0"
  RunKind kind = RunKind::kRow;
  size_t arm = 0;  ///< in the experiment's arms; of a phase, its number among phases
  std::string row{}, name{};
  Settings axes{};
  std::string tried{};  ///< of a tuning run: "lr 0.001"
  spec::RunSpec spec{};
  std::string cost{};               ///< alike in runs that take about as long
  bool settled = true;              ///< false: its rate is still being tuned
  std::optional<size_t> start{};    ///< the phase's run that it starts from
  std::string folder{};             ///< below the sweep's; empty until it is settled
  std::optional<size_t> same_as{};  ///< an earlier run of another arm that tuning made the same run
  RunState state = RunState::kPlanned;
  bool reused = false, other_version = false, alone = true;
  int exit_code = 0;
  std::string message{};
  double seconds = std::numeric_limits<double>::quiet_NaN();  ///< that it took; NaN: not known
  std::optional<Score> score{};                               ///< of a tuning run

  int64_t seed() const { return spec.train.seed; }
  std::string arm_id() const;  ///< "a0"; of a phase "p0"
  std::string label() const;   ///< "ddp, seed 2"
  bool timed() const { return kind == RunKind::kRow || kind == RunKind::kControl; }
  /// It came to a result, if only to "it diverges".
  bool in_order() const { return state == RunState::kDone || state == RunState::kDiverged; }
  bool ended() const { return state != RunState::kPlanned && state != RunState::kRunning; }
};

struct Plan {
  std::filesystem::path out;
  std::vector<SweepRun> runs;  ///< phases, tuning runs, rows and controls by arm; finer tuning runs last
  std::vector<Tuning> tunings;
  std::map<std::string, std::string> folders{};  ///< the whole hash of the settings by folder

  /// Adds the runs of a tuning that try this value. Nothing where they are there.
  void add_trial(const Experiment& experiment, Tuning& tuning, double value, bool refined);
  /// Gives the arm's rows the value that was chosen, and with it their folders. One that comes to another
  /// row's settings is the same run.
  void settle(const Experiment& experiment, const Tuning& tuning);
  /// Names the folder by the settings, and by more where another's has that name.
  void give_folder(SweepRun& run);

 private:
  void mark_same();
};

/// All that can be known before anything has run.
Plan make_plan(const Experiment& experiment, const std::filesystem::path& out);

}  // namespace syncopate::lab
