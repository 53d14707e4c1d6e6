#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "syncopate/comm/metered.h"
#include "syncopate/data/dataset.h"
#include "syncopate/data/loader.h"
#include "syncopate/optim/schedule.h"
#include "syncopate/parallel/engine.h"
#include "syncopate/parallel/lockstep.h"
#include "syncopate/parallel/strategies/free_running.h"
#include "syncopate/parallel/strategy.h"
#include "syncopate/record/record.h"
#include "syncopate/train/balance.h"
#include "syncopate/train/control.h"
#include "syncopate/train/metric.h"

namespace syncopate::train {

struct TrainerOptions {
  int64_t steps = 1;             ///< optimizer steps in all
  int64_t updates_per_step = 1;  ///< where workers run free, each of their updates is a step here; the
                                 ///< schedule counts so many as one
  int64_t eval_every = 0;        ///< steps; 0: at the end of every epoch
  int64_t save_every = 0;  ///< steps; 0: at the end of every epoch; always at the end and when interrupted
  int64_t eval_batch = 64;
  bool broadcast_buffers = false;  ///< every step begins with rank 0's buffers (batch norms' statistics)
  uint64_t seed = 0;
  ControlOptions control{};
  std::optional<BalanceOptions> balance{};  ///< none: every worker has the same share of a batch
  std::filesystem::path checkpoint;         ///< empty: none
  nlohmann::ordered_json inputs;            ///< what a run that resumes must have in common: data, vocabulary
  nlohmann::ordered_json environment;  ///< kept in checkpoints: what the bits depend on beside the settings
};

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

struct TrainResult {
  int64_t steps = 0;
  bool interrupted = false;
  std::string ended = "steps";  ///< why it ended: all its "steps" are made, a "plateau", or the "time limit"
  std::vector<record::EpochRecord> epochs;
  std::optional<record::EvalRecord> eval;  ///< of the final parameters
  int64_t skipped = 0;                     ///< steps left out because an fp16 gradient overflowed
  double bytes_sent = 0;                   ///< by all ranks together, in all steps
  double seconds = 0;                      ///< in steps, as the clock on the wall has it
  /// Where workers run free, by worker: how many updates it made, and how stale they were.
  std::vector<int64_t> updates;
  std::vector<std::vector<int64_t>> staleness;
  std::vector<int64_t> shares;  ///< of a global batch, by rank; empty: equal
};

/// The training loop. Owns nothing it is given; all of it must outlive the trainer.
class Trainer {
 public:
  struct Parts {
    parallel::Replica& replica;
    parallel::Engine& engine;
    parallel::Strategy& strategy;
    comm::Metered& group;
    data::Loader& loader;
    const data::Dataset* test = nullptr;  ///< null: no evaluation
    MakeMetric metric;                    ///< of the test set
    const optim::Schedule& schedule;
    Listener& listener;
  };

  Trainer(Parts parts, TrainerOptions options);

  /// From the start, or after the checkpoint's step when `resume`. Collective. Throws DivergedError when the
  /// loss is not a number: on every rank at the same step or, in a step in which workers do not talk, on the
  /// one that sees it.
  TrainResult run(bool resume);

 private:
  struct Step {
    record::StepRecord record;
    parallel::Lockstep::Outcome outcome;
    int64_t epoch = 0;
    double own_loss() const;
  };
  int64_t advance(int64_t step);  ///< by a step, or by a section; returns the steps done then
  bool train_step(int64_t step);  ///< false: some rank was asked to stop
  Step one_step(int64_t step);
  int64_t run_section(parallel::FreeRunning& strategy, int64_t first);  ///< returns the steps done then
  int64_t section_end(int64_t first) const;
  /// In order; also takes rank 0's word that time is up. Collective.
  std::vector<Step> updates_of_all(const std::vector<Step>& mine, bool time_is_up);
  bool ends_early();  ///< notes why; alike on all ranks
  void end_of_epoch(int64_t steps_done);
  void evaluate_now(int64_t steps_done);
  void save(int64_t steps_done);
  int64_t restore();
  /// This rank computed for `seconds` of the step.
  void balance(const data::StepBatches& batches, double seconds, int64_t steps_done);
  int64_t skipped_steps();     ///< by an overflow, of all ranks where each has its own; collective
  double bytes_sent_by_all();  ///< collective
  /// Ranks may differ in what their batch norms have seen.
  bool buffers_differ() const;
  /// Makes every replica the model that is evaluated or is the result; of buffers it is the ranks' mean, or
  /// rank 0's where those are broadcast. Collective.
  void settle();
  /// What a checkpoint must hold of this rank beside what rank 0 saves for all.
  std::vector<tensor::NamedTensor> state_of_rank();
  /// Where replicas differ or run free, so may what they count: how many updates they made, how far they
  /// scale losses.
  bool ranks_count_apart() const;
  void note_counters();
  void take_counters();
  bool due(int64_t every, int64_t steps_done) const;  ///< `every` 0: at the end of an epoch
  void phase(int64_t step, const char* name) { parts_.listener.phase(step, name); }

  Parts parts_;
  TrainerOptions options_;
  parallel::Lockstep lockstep_;
  Control control_;
  bool time_is_up_ = false;  ///< as rank 0 told all
  std::optional<Balance> balance_;
  TrainResult result_;
  /// Sums over the epoch so far, part of a checkpoint.
  struct EpochSums {
    int64_t epoch = 0;
    double loss = 0, count = 0, seconds = 0;
  } sums_;
  at::Tensor counters_;           ///< double [4]: the optimizer's steps and the loss scale's state
  double loss_ = 0;               ///< the last that was known: a rank may be without examples in a step
  std::vector<int64_t> updates_;  ///< by rank, where workers run free
  double bytes_sent_ = 0;         ///< by this rank, in the steps of this process
  double bytes_before_ = 0;       ///< by all ranks, before the checkpoint
  int64_t evals_ = 0;
  int64_t eval_step_ = -1;  ///< steps done when result_.eval was taken
  bool epoch_ended_ = false;
};

}  // namespace syncopate::train
