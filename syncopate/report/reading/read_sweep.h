#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/record/record.h"
#include "syncopate/report/reading/attachments.h"
#include "syncopate/report/reading/step_curve.h"
#include "syncopate/report/results.h"

namespace syncopate::report {

/// What a run's folder holds.
struct RunFiles {
  Settings settings{};                        ///< all of spec.json
  std::optional<record::RunRecord> record{};  ///< of a finished run; confusion matrices are dropped
  double majority = kUnknown;                 ///< share of the most frequent class in the tested examples
  bool one_answer = false;                    ///< nearly all of them are given the same class
  std::vector<record::EvalRecord> evals{};    ///< in their order, without confusion matrices
  std::vector<double> eval_examples{}, eval_seconds{};  ///< of training, until each
  Curve curve{};
  double first_loss = kUnknown, last_loss = kUnknown;  ///< of the first and of the last tenth of its steps
  int64_t recorded_steps = 0;
  std::optional<Progress> progress{};  ///< of a run that is not finished
  std::string host{}, cpu{}, command{}, date{}, version{},
      commit{};        ///< of env.json, until there is a record
  bool alive = false;  ///< somebody holds the folder

  const std::string& setting(std::string_view name) const;  ///< empty: it has none
};

/// One run: what the sweep says about it, and its files.
struct RunData {
  std::string id{}, kind = "row", arm{}, row{}, name{}, control_of{}, folder{}, state = "planned", message{};
  Settings axes{};
  int64_t seed = 0;
  double lr = kUnknown;
  bool reused = false, other_version = false, alone = true;
  std::filesystem::path path{};
  std::shared_ptr<const RunFiles> files = std::make_shared<RunFiles>();  ///< never null

  bool done() const { return state == "done" && files->record.has_value(); }
};

/// Values of a setting that were tried for an arm.
struct TuningData {
  std::string arm{};
  Tuning tuning{};
};

/// When and how large a file is: another stamp, other contents. Nothing of one that is not there.
std::string stamp_of(const std::filesystem::path& path);

/// What a folder holds of a comparison.
struct SweepData {
  std::string title{}, file{}, version{}, commit{}, state = "finished", baseline{};
  std::optional<Target> target{};
  std::vector<std::string> differs{}, axes{};
  double worker_hour = kUnknown, link_gbit = kUnknown;
  std::string currency{};
  bool planned = false;  ///< there is a sweep.json
  std::vector<RunData> runs{};
  std::vector<TuningData> tunings{};
  std::vector<Note> notes{};
  Attachments attached{};
  int64_t omitted_curves = 0;
};

/// Reads a folder again and again, each time what is new: an experiment's with its sweep.json, a folder of
/// runs, or one run's. Finished runs are read once; of one that goes on, the lines that came since.
/// A run that cannot be read is left out and named in a note. Not for several threads at once.
class SweepReader {
 public:
  explicit SweepReader(std::filesystem::path folder);
  ~SweepReader();
  SweepReader(const SweepReader&) = delete;
  SweepReader& operator=(const SweepReader&) = delete;

  /// True where something is new since the last call. Throws DataError where there is no such folder, or
  /// neither a run nor a prediction in it.
  bool refresh();
  const SweepData& data() const { return data_; }

 private:
  struct Cached;
  bool read_runs(SweepData& into);

  std::filesystem::path folder_;
  SweepData data_;
  std::string plan_;      ///< sweep.json as it was read last
  std::string attached_;  ///< the stamp of what else was read
  std::map<std::filesystem::path, std::unique_ptr<Cached>> cache_;
};

}  // namespace syncopate::report
