#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "syncopate/lab/inputs.h"
#include "syncopate/lab/plan.h"
#include "syncopate/lab/reuse.h"
#include "syncopate/lab/sweep_file.h"

namespace syncopate::lab {

/// What earlier sweeps left in a folder, as far as it can be used.
class ExistingRuns {
 public:
  /// With `again` a run that another version of the program made does not count.
  ExistingRuns(const std::filesystem::path& out, bool again);

  /// Whether the run is there, done or diverged; it is marked so then. Changes nothing on the disk.
  bool find(SweepRun& run);

  struct Beginning {
    bool resume = false;      ///< there is something to go on from
    std::string note{};       ///< why it runs again, for people; may be empty
    std::string init_from{};  ///< as the run that goes on spelled it
  };
  /// For a run that is not there and begins now: moves what is outdated aside and notes what it reads.
  Beginning begin(SweepRun& run);
  /// Something else runs beside it: that stays with the run, whoever goes on with it or reports it.
  void share(SweepRun& run);
  /// It ran for so long; what it takes in all, with what it took before it was stopped.
  double took(const SweepRun& run, double seconds);

  void save() { book_.save(); }

 private:
  Found look(const SweepRun& run, const Fingerprints& inputs);
  bool diverged(SweepRun& run, const FormerRun& before, const Fingerprints& inputs) const;

  std::filesystem::path out_;
  bool again_;
  std::map<std::string, FormerRun> former_;
  InputBook book_;
};

/// The run is done with this result.
void accept(SweepRun& run, const record::RunRecord& record);

}  // namespace syncopate::lab
