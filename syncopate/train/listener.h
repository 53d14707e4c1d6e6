#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncopate/parallel/totals.h"
#include "syncopate/record/record.h"

namespace syncopate::train {

/// Where a run goes on.
struct ResumePoint {
  int64_t step = 0;          ///< steps of the run so far
  int64_t recorded = 0;      ///< of steps or updates on record; not `step` where updates had another size
  std::vector<int64_t> own;  ///< by rank, also of those that are no more: updates that it made; empty: all
                             ///< ranks make every step
  int64_t evals = 0;
  int ranks = 1;                   ///< now
  std::vector<std::string> notes;  ///< what differs from the run that stopped
};

/// What a run is told about while it goes on; called on every rank, in the training thread.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void phase(int64_t /*step*/, const char* /*phase*/) {}
  virtual void resumed(const ResumePoint&) {}
  /// A step of this rank, or an update where workers run free, as it happens. Its loss is not a number where
  /// others' part of it is not known yet.
  virtual void update(const record::StepRecord&, double /*own_loss*/) {}
  /// Those of all ranks since the last such call, in order and complete: when ranks have talked.
  virtual void updates(const std::vector<record::StepRecord>&) {}
  virtual void eval(const record::EvalRecord&) {}
  virtual void epoch(const record::EpochRecord&) {}
  virtual void saved(int64_t /*step*/) {}
  /// From the next step on workers have these shares of a global batch.
  virtual void shares(int64_t /*step*/, const std::vector<int64_t>& /*shares*/) {}
  virtual bool stop_requested() { return false; }
  virtual bool can_halt() const { return false; }
  /// If so, before step number `step` (from 0), where ranks do not talk in every step: tells the others by
  /// another way what this one wishes. What all ranks halt for, every one before this very step; nothing:
  /// make the step.
  virtual parallel::Wishes halt(int64_t /*step*/, const parallel::Wishes& /*mine*/) { return {}; }
};

}  // namespace syncopate::train
