#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "syncopate/data/dataset.h"
#include "syncopate/record/record.h"
#include "syncopate/train/balance.h"
#include "syncopate/train/best_model.h"
#include "syncopate/train/control.h"
#include "syncopate/train/listener.h"
#include "syncopate/train/loop.h"
#include "syncopate/train/metric.h"
#include "syncopate/train/replica_parts.h"

namespace syncopate::train {

struct TrainerOptions {
  int64_t steps = 1;             ///< optimizer steps in all
  int64_t updates_per_step = 1;  ///< see LoopOptions
  int64_t eval_every = 0;        ///< steps; 0: at the end of every epoch
  /// Steps; 0: at the end of every epoch; negative: by the clock alone (ControlOptions::save_seconds). Always
  /// at the end and when interrupted.
  int64_t save_every = 0;
  int64_t eval_batch = 64;
  bool broadcast_buffers = false;  ///< every step begins with rank 0's buffers (batch norms' statistics)
  uint64_t seed = 0;
  ControlOptions control{};
  bool keep_best =
      false;  ///< the result is the best model by the validation set; needs that and a checkpoint
  std::optional<BalanceOptions> balance{};      ///< none: every worker has the same share of a batch
  parallel::NoiseScale* noise_scale = nullptr;  ///< null: not measured; must outlive the trainer
  /// Of a model in stages: the test set is scored once more at the end with what travels compressed; measures
  /// are called NAME_coded.
  bool coded_eval = false;
  bool worker_evals = false;           ///< where replicas differ: scores each worker's own model, too
  std::string start_hash{};            ///< of the model before the first step; empty: it is whole, and hashed
  std::filesystem::path checkpoint;    ///< empty: none
  nlohmann::ordered_json inputs;       ///< what a run that resumes must have in common: data, vocabulary
  nlohmann::ordered_json environment;  ///< kept in checkpoints: what the bits depend on beside the settings
};

struct TrainResult {
  int64_t steps = 0;
  bool interrupted = false;
  std::string ended = "steps";  ///< why it ended: all its "steps" are made, a "plateau", or the "time limit"
  std::vector<record::EpochRecord> epochs;
  std::optional<record::EvalRecord> eval;        ///< the test set's, of the model that was kept
  std::optional<record::EvalRecord> validation;  ///< the validation set's, of the same
  bool kept_best = false;                        ///< it is the best by the validation set, not the last
  int64_t kept_step = 0;                         ///< steps done when that model was made
  int64_t skipped = 0;                           ///< steps left out because an fp16 gradient overflowed
  double bytes_sent = 0;                         ///< by all ranks together, in all steps
  /// The same in detail; none where an older version made the first steps and did not keep it.
  std::optional<comm::Meter> sent;
  comm::Meter own_sent{};  ///< by this rank, in the steps of this process
  double seconds = 0;      ///< in steps, as the clock on the wall has it
  /// Where workers run free, by worker: how many updates it made (those count that are no more), and how
  /// stale they were.
  std::vector<int64_t> updates;
  std::vector<std::vector<int64_t>> staleness;
  std::vector<int64_t> shares;                   ///< of a global batch, by rank; empty: equal
  std::string start_hash;                        ///< of parameters and buffers before the first step
  double noise_scale = record::kNan;             ///< in examples, over the steps of this process
  std::vector<record::EvalRecord> worker_evals;  ///< by rank, of the test set
};

/// The training loop. Owns nothing it is given; all of it must outlive the trainer.
class Trainer {
 public:
  struct Parts {
    parallel::Replica& replica;
    parallel::Engine& engine;
    parallel::Strategy& strategy;
    parallel::Mesh mesh;
    const comm::Metered& meter;  ///< counts what this rank sends
    data::Loader& loader;
    const data::Dataset* test = nullptr;  ///< null: no evaluation
    MakeMetric metric;                    ///< of the test set
    /// What evaluations during training, and with them all choices, look at; the test set is scored once, at
    /// the end, then. Null: the test set is all there is.
    const data::Dataset* validation = nullptr;
    MakeMetric validation_metric{};
    const optim::Schedule& schedule;
    Listener& listener;
    MakeLoop loop = lockstep_loop;
  };

  Trainer(Parts parts, TrainerOptions options);
  Trainer(const Trainer&) = delete;  // its loop points into it
  Trainer& operator=(const Trainer&) = delete;

  /// From the start, or after the checkpoint's step when `resume`. Collective. Throws DivergedError when the
  /// loss is not a number: on every rank at the same step or, in a step in which workers do not talk, on the
  /// one that sees it.
  TrainResult run(bool resume);

 private:
  int64_t advance();  ///< to the next moment at which a run can be evaluated; returns the steps done then
  /// Before an evaluation, a checkpoint or the end of an epoch: every rank knows all losses. Collective.
  void bring_together();
  bool ends_early();  ///< notes why; alike on all ranks
  void end_of_epoch(int64_t steps_done);
  void evaluate_now(int64_t steps_done);
  void conclude();  ///< the model that is kept is every replica's, and is scored; collective
  /// Each worker's own model as it is now. Collective.
  void score_workers();
  void add_coded_score(record::EvalRecord& eval);  ///< collective
  record::EvalRecord score(bool on_validation, int64_t steps_done, const std::string& model);
  void save(int64_t steps_done);
  int64_t restore();
  /// Where this rank's engine keeps its state beside the checkpoint of that step.
  std::filesystem::path engine_state(int64_t steps_done) const;
  void save_engine(int64_t steps_done);  ///< collective
  void restore_engine(int64_t steps_done, Resumption& how);
  void remove_engine_states();        ///< but the last
  nlohmann::ordered_json progress();  ///< what a checkpoint holds beside replica and strategy; collective
  void go_on_from(const nlohmann::ordered_json& progress, Resumption& how);
  /// Of a run whose updates had another size: so many of the size they have now.
  int64_t converted(int64_t steps, const nlohmann::ordered_json& progress, Resumption& how) const;
  int64_t skipped_steps();    ///< by an overflow, of all ranks where each has its own; collective
  comm::Meter sent_by_all();  ///< in the steps of this process; collective
  Trained trained() const;
  parallel::Settled settle();  ///< makes every replica the model that is evaluated; collective
  bool due(int64_t every, int64_t steps_done) const;  ///< `every` 0: at the end of an epoch

  Parts parts_;
  TrainerOptions options_;
  Control control_;
  std::optional<Balance> balance_;
  std::unique_ptr<Loop> loop_;
  bool time_is_up_ = false, save_wished_ = false;  ///< as rank 0 told all
  TrainResult result_;
  /// Sums over the epoch so far, part of a checkpoint.
  struct EpochSums {
    int64_t epoch = 0;
    double loss = 0, count = 0, seconds = 0;
  } sums_;
  std::string start_hash_;
  int64_t recorded_ = 0;     ///< steps or updates that the listener was told of
  comm::Meter sent_{};       ///< by this rank, in the steps of this process
  double bytes_before_ = 0;  ///< by all ranks, before the checkpoint
  std::optional<comm::Meter> sent_before_ = comm::Meter{};  ///< the same in detail; none: not known
  int64_t evals_ = 0;
  std::optional<record::EvalRecord> last_eval_;
  int64_t eval_step_ = -1;         ///< steps done when that was taken
  std::optional<BestModel> best_;  ///< none: the last is kept
  bool epoch_ended_ = false;
  int64_t engine_saved_ = -1;  ///< the step of the engine's state that belongs to the checkpoint; -1: none
};

}  // namespace syncopate::train
