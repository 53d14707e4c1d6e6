#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "syncopate/base/error.h"
#include "syncopate/base/progress.h"
#include "syncopate/comm/group.h"
#include "syncopate/data/dataset.h"
#include "syncopate/record/record.h"
#include "syncopate/run/world.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::run {

struct WorkerOptions {
  std::string out;               ///< the run's folder; empty: chosen after the spec's name
  bool folder_is_ready = false;  ///< our launcher chose and made it
  bool resume = false;
  bool extend = false;    ///< with `resume`: settings may change that make it another run
  std::string command{};  ///< as the user gave it, for the record
  std::string trace{};    ///< a file for a trace of a few steps, which rank 0 writes; empty: none
  int64_t trace_steps = 3;
  Progress::Style progress = Progress::Style::kLines;
  std::function<bool()> stop_requested;
  std::function<void(const std::string&)>
      note{};  ///< told what a user should know before training. May be empty
  /// Last resort when this process has learned that the run is lost but does not come back by itself.
  std::function<void(const std::string& sentence)> give_up;
  /// Workers of one process: lets them hold one copy of what all have read. Collective. May be empty.
  using Data = std::shared_ptr<const data::Dataset>;
  std::function<void(comm::Group&, Data& train, Data& test)> keep_one_copy{};
};

/// A failure that the others, and the launcher if there is one, have been told of.
class ReportedError : public Error {
 public:
  using Error::Error;
};

struct WorkerResult {
  bool interrupted = false;
  std::optional<record::RunRecord> record;  ///< rank 0, when the run is done
};

/// Trains as one worker of the run: joins the others, loads, trains, and (rank 0) writes the result and the
/// model. Over `group`, or over the one that `world` says how to open. Throws ReportedError, or another Error
/// when it failed before it met the others.
WorkerResult run_worker(spec::RunSpec spec, const World& world, const WorkerOptions& options,
                        std::unique_ptr<comm::Group> group = nullptr);

}  // namespace syncopate::run
