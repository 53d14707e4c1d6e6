#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "syncopate/base/progress.h"
#include "syncopate/comm/open.h"
#include "syncopate/record/events.h"
#include "syncopate/record/lines.h"
#include "syncopate/record/record.h"
#include "syncopate/record/run_folder.h"
#include "syncopate/run/records/usage.h"
#include "syncopate/spec/fault.h"
#include "syncopate/train/listener.h"

namespace syncopate::run {

/// Writes down what a run does and shows it: rank 0 keeps steps.jsonl and evals.jsonl and the progress, every
/// rank its own loss_<rank>.txt, the lifeline hears of every phase.
class Recorder : public train::Listener {
 public:
  Recorder(record::RunFolder folder, comm::Membership& membership, int rank, int64_t total_steps,
           Progress::Style style, std::function<bool()> stop_requested, std::optional<spec::Fault> fault);

  void phase(int64_t step, const char* phase) override;
  void resumed(const train::ResumePoint& point) override;
  void update(const record::StepRecord& record, double own_loss) override;
  void updates(const std::vector<record::StepRecord>& records) override;
  void eval(const record::EvalRecord& record) override;
  void epoch(const record::EpochRecord& record) override;
  void saved(int64_t step) override;
  void shares(int64_t step, const std::vector<int64_t>& shares) override;
  bool stop_requested() override;
  bool can_halt() const override { return membership_.lifeline != nullptr; }
  parallel::Wishes halt(int64_t step, const parallel::Wishes& mine) override;

  void begin();  ///< a new run: fresh files
  /// Called at rank 0 once the checkpoint has been read and the run goes on: not for one that is refused.
  void when_resumed(std::function<void()> note) { when_resumed_ = std::move(note); }
  void say(const std::string& line) { progress_.say(line); }
  /// The run ended after this step: its progress stays on the screen. Another worker may have made the step.
  void finish(int64_t step) { progress_.finish(step); }
  /// Before begin() or resumed(): writes event files too, at rank 0.
  void write_events() { writes_events_ = first(); }
  /// From here on: cores that processes other than these keep busy, seen from rank 0.
  void watch_load(std::vector<pid_t> ours) {
    if (first()) load_.emplace(std::move(ours));
  }
  double outside_load() const { return load_ ? load_->mean() : record::kNan; }
  const std::vector<record::StepRecord>& steps() const { return steps_; }
  int64_t first_step() const { return first_step_; }  ///< steps that were made before this process
  /// A mean step of this rank, by this process: without the first, where there are others.
  record::StepRecord own_step() const;

 private:
  void open(int64_t steps, int64_t own, int64_t evals);
  void resume_events(int64_t step);
  bool first() const { return rank_ == 0; }

  record::RunFolder folder_;
  comm::Membership& membership_;
  int rank_;
  Progress progress_;
  std::function<bool()> stop_requested_;
  std::function<void()> when_resumed_;
  std::optional<spec::Fault> fault_;
  std::vector<record::StepRecord> steps_;  ///< rank 0 alone
  std::unique_ptr<record::LineFile> step_lines_, eval_lines_, loss_lines_;
  std::optional<OutsideLoad> load_;
  bool writes_events_ = false;
  std::optional<record::EventFolder> events_;
  int64_t first_step_ = 0;
  record::StepRecord first_own_, own_;  ///< this rank's first step and the sum of the others
  int64_t own_steps_ = 0;
  double known_loss_ = 0;    ///< the last mean loss over all workers, for the progress
  int64_t known_step_ = -1;  ///< of which step; -1: none yet
  bool told_stop_ = false;
  int64_t wished_ = 0;  ///< of the lifeline, since all last halted
};

/// Medians and sums over the steps of a whole run.
void summarise(const std::vector<record::StepRecord>& steps, record::RunRecord& into);

}  // namespace syncopate::run
