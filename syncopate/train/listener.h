#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncopate/record/record.h"

namespace syncopate::train {

/// What a run is told about while it goes on; called on every rank, in the training thread.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void phase(int64_t /*step*/, const char* /*phase*/) {}
  /// The run goes on after `step` steps; `notes` say what differs from the machine that stopped.
  /// Of the steps this rank made `own` itself (all of them, where ranks keep in step).
  virtual void resumed(int64_t /*step*/, int64_t /*own*/, int64_t /*evals*/,
                       const std::vector<std::string>& /*notes*/) {}
  virtual void step(const record::StepRecord&, double /*own_loss*/) {}
  /// Where workers run free: an update of this rank, as it happens; and all ranks' updates since the last
  /// such call, in order, when they have met again.
  virtual void update(const record::StepRecord&, double /*own_loss*/) {}
  virtual void updates(const std::vector<record::StepRecord>&) {}
  virtual void eval(const record::EvalRecord&) {}
  virtual void epoch(const record::EpochRecord&) {}
  virtual void saved(int64_t /*step*/) {}
  /// From the next step on workers have these shares of a global batch.
  virtual void shares(int64_t /*step*/, const std::vector<int64_t>& /*shares*/) {}
  virtual bool stop_requested() { return false; }
};

}  // namespace syncopate::train
