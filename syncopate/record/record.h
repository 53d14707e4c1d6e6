#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::record {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// One optimizer step, as rank 0 saw it.
struct StepRecord {
  int64_t step = 0;  ///< from 1
  double loss = 0;   ///< mean over the global batch; where workers run free, over the update's own batch
  double lr = 0;
  int64_t examples = 0;                                      ///< in the global batch
  double ms = 0;                                             ///< the whole step
  double compute_ms = 0;                                     ///< forward, backward, update
  double forward_ms = 0, backward_ms = 0, optimizer_ms = 0;  ///< its parts; all 0 where they are not known
  double exchange_ms = 0;  ///< spent waiting for other workers, not hidden behind compute
  double hidden_ms = 0;    ///< exchange that went on behind compute
  double data_ms = 0;      ///< spent waiting for the loader
  double bytes_sent = 0;   ///< by this worker
  double grad_norm = 0;    ///< before clipping; 0 when clipping is off
  bool operator==(const StepRecord&) const = default;
};

/// A score: a loss and named measures such as "accuracy".
struct EvalRecord {
  int64_t step = 0;
  std::string model;  ///< which model was scored, if workers' models may differ: "average of the workers"
  std::string split = "test";  ///< of which examples: "test" or "validation"
  double loss = 0;
  int64_t examples = 0;
  double seconds = 0;
  std::map<std::string, double> measures;
  std::vector<std::vector<int64_t>> confusion;  ///< [truth][answer]; empty where there are no classes
  bool operator==(const EvalRecord&) const = default;
};

/// A metric formatted for display: fractions as "50.25 %", SQuAD's exact_match and f1 (per cent already) and
/// perplexity as numbers.
std::string measure_for_people(const std::string& name, double value);

/// The measure that a task is judged by first: exact match's F1, perplexity or accuracy, whichever is there.
std::string main_measure(const EvalRecord& record);
/// Whether `a` is the better score by that measure, or by the loss where there is none.
bool better(const EvalRecord& a, const EvalRecord& b);

struct EpochRecord {
  int64_t epoch = 0;   ///< from 1
  double seconds = 0;  ///< of training, evaluation apart
  double loss = 0;     ///< mean over the epoch's examples
  std::optional<EvalRecord> eval;
  bool operator==(const EpochRecord&) const = default;
};

/// Where a result comes from.
struct Provenance {
  std::string version, commit;  ///< of the program; no commit: not built from a repository
  std::string date;             ///< when this process began, UTC
  std::string host, command;
  int64_t seed = 0;
  double lr = 0;
  bool operator==(const Provenance&) const = default;
};

/// One kind of collective operation, per step, over a whole run; without those that carry only control.
struct Collective {
  std::string name;    ///< "all_reduce"
  double calls = 0;    ///< by one worker
  double bytes = 0;    ///< nccl-tests' size: of the tensor, or of all ranks' where each has its own
  double seconds = 0;  ///< in which at least one was under way, whether anybody waited or not
  bool operator==(const Collective&) const = default;
};

/// The network that a run's workers sat on, where it is known.
struct NetworkRecord {
  struct Host {
    std::string name, region;
    bool operator==(const Host&) const = default;
  };
  /// One direction between two hosts that ranks sat on.
  struct Link {
    int64_t from = 0, to = 0;  ///< hosts
    double latency_ms = 0, gbit = 0;
    double bytes = kNan;  ///< that it carried per step, headers included; NaN: not measured
    double busy = kNan;   ///< share of the time in which it sent; NaN: not measured
    bool operator==(const Link&) const = default;
  };
  std::string name;  ///< the preset's or the file's
  double scale = 1;  ///< by which its rates were divided
  std::string how;   ///< "switch" or "netem": emulated on one machine; "real"
  std::string congestion_control;
  double late_ms_p99 = kNan;  ///< of emulated packets, after they were due
  bool trustworthy = true;    ///< false: the machine was too busy to emulate it well
  std::vector<Host> hosts;
  std::vector<int64_t> seats;  ///< the host of each rank, servers behind the workers
  std::vector<Link> links;
  bool operator==(const NetworkRecord&) const = default;
};

/// What a run was expected to take.
struct PredictionRecord {
  double ms = 0, compute_ms = 0, exchange_ms = 0, hidden_ms = 0;  ///< per iteration, as RunRecord's
  double bytes_sent_per_step = 0;
  std::string from;  ///< where its times of compute come from: "this run", "a probe on this machine"
  bool operator==(const PredictionRecord&) const = default;
};

/// One stage of a pipeline: means over its replicas and, of times, over the steps but the first of the
/// process that ended the run.
struct StageRecord {
  std::vector<int64_t> ranks;  ///< of its replicas
  int64_t blocks = 0;
  double ms = 0;  ///< the whole step; its parts:
  double forward_ms = 0, backward_ms = 0;
  double coding_ms = 0;                                    ///< packing and unpacking what travels
  double waiting_forward_ms = 0, waiting_backward_ms = 0;  ///< blocked for activations, for their gradients
  double sending_ms = 0;    ///< blocked because too much that was sent earlier had not left
  double exchange_ms = 0;   ///< other waits: for replicas, for the step's losses, for the norm of a gradient
  double optimizer_ms = 0;  ///< 0 where it is not known
  double data_ms = 0;
  double other_ms = 0;  ///< what is left
  double bubble = 0;    ///< share of the step in which it neither computed nor coded
  /// Sent per step by one rank: hidden states, their gradients, what is averaged with the other replicas
  /// (gradients, or parameters where a strategy averages these), and tables that two stages read.
  double bytes_forward = 0, bytes_backward = 0, bytes_gradients = 0, bytes_tied = 0;
  /// Over the whole run: bits of a value that it sent, steps included, and how far what was received was from
  /// what was meant, as a share of its size; NaN: it sends none.
  double bits_forward = kNan, bits_backward = kNan;
  double error_forward = kNan, error_backward = kNan;
  bool operator==(const StageRecord&) const = default;
};

/// How a model was cut into stages.
struct PipelineRecord {
  int64_t replicas = 1;  ///< of each stage
  std::string schedule;
  int64_t micro_batches = 0;  ///< of a replica in a step
  std::string cut;            ///< blocks of each stage: "3,5,4"
  std::string activation_codec = "none";
  bool coded_evaluations = false;  ///< scores are of what the codec makes of hidden states
  bool operator==(const PipelineRecord&) const = default;
};

/// What result.json holds.
struct RunRecord {
  std::string task, model, strategy;
  std::string codec = "none";  ///< how gradients were compressed
  std::string init_from;       ///< the run or folder that this one started from; empty: none
  std::string device = "cpu", precision = "fp32";
  int64_t skipped_steps = 0;  ///< because an fp16 gradient overflowed
  int64_t workers = 1;
  int64_t steps = 0;
  int64_t examples = 0;
  double ms_per_iteration = 0;    ///< median over the steps but the first; the mean where some send nothing
  double ms_p50 = 0, ms_p95 = 0;  ///< of the steps but the first, one by one
  double compute_ms = 0, exchange_ms = 0, data_ms = 0;
  double forward_ms = 0, backward_ms = 0, optimizer_ms = 0;  ///< parts of compute_ms; all 0: not known
  double hidden_ms = 0;                                      ///< exchange that went on behind compute
  double examples_per_s = 0;
  int64_t global_batch = 0;  ///< examples in one update
  /// For asynchronous strategies, by worker: the number of updates, and a histogram of their staleness.
  std::vector<int64_t> updates;
  std::vector<std::vector<int64_t>> staleness;
  double bytes_sent_per_step = 0;  ///< by one worker: the mean over workers
  /// The same by what they carry: "gradients", "parameters", "activations", "control".
  std::map<std::string, double> bytes_by_kind;
  std::vector<Collective> collectives;
  double train_loss = 0;  ///< mean over the last tenth of the steps
  double train_seconds = 0;
  std::vector<int64_t> shares;  ///< of a global batch, by worker, at the end; empty: equal
  std::string ended = "steps";  ///< why: all its "steps" are made, a "plateau", or the "time limit"
  std::vector<EpochRecord> epochs;
  std::optional<EvalRecord> eval;        ///< the test split's, of the model that was kept
  std::optional<EvalRecord> validation;  ///< the validation split's, of the same model; none: no such split
  std::string keep = "last";             ///< which model was kept: the "last", or the "best" by validation
  int64_t kept_step = 0;                 ///< steps done when it was made
  std::string run_dir;
  /// Checksums of what was trained and tested on, and of the model before the first step: alike in runs that
  /// can be compared.
  std::string data_hash, start_hash;
  std::string test_hash;       ///< of the test examples alone; empty: nothing is tested
  std::string cpu;             ///< of rank 0's machine
  int64_t cores = 0;           ///< of that machine
  int64_t threads = 0;         ///< that a worker computes with
  double outside_load = kNan;  ///< cores that others kept busy while this run trained, a mean; NaN: not known
  int64_t peak_memory = 0;     ///< bytes of host memory of the worker that held most; 0: not known
  double noise_scale = kNan;   ///< gradient noise scale, in examples; NaN: not measured
  std::vector<EvalRecord> worker_evals;  ///< by worker, where that was asked for
  std::optional<NetworkRecord> network;
  std::optional<PredictionRecord> predicted;
  std::optional<PipelineRecord> pipeline;  ///< none: every worker held the whole model
  std::vector<StageRecord> stages;         ///< in the order of the forward pass; empty: not cut, or not known
  bool simulated = false;                  ///< nothing was trained: a simulator wrote this record
  Provenance provenance;
  bool operator==(const RunRecord&) const = default;  ///< false where a number is NaN
};

/// JSON has no NaN and no infinity: both are written as null, which is read as NaN. The readers throw
/// nlohmann::json::exception where a field is missing or of another type.
nlohmann::ordered_json to_json(const StepRecord&);
nlohmann::ordered_json to_json(const EvalRecord&);
nlohmann::ordered_json to_json(const EpochRecord&);
nlohmann::ordered_json to_json(const Provenance&);
nlohmann::ordered_json to_json(const Collective&);
nlohmann::ordered_json to_json(const NetworkRecord&);
nlohmann::ordered_json to_json(const PredictionRecord&);
nlohmann::ordered_json to_json(const StageRecord&);
nlohmann::ordered_json to_json(const PipelineRecord&);
nlohmann::ordered_json to_json(const RunRecord&);  ///< with the last evaluation's confusion matrix alone
/// Indented for people, with a list of numbers in one line: a matrix has a line for each row.
std::string readable(const nlohmann::ordered_json& value);
StepRecord step_from_json(const nlohmann::ordered_json&);
EvalRecord eval_from_json(const nlohmann::ordered_json&);
EpochRecord epoch_from_json(const nlohmann::ordered_json&);
NetworkRecord network_from_json(const nlohmann::ordered_json&);
PredictionRecord prediction_from_json(const nlohmann::ordered_json&);
StageRecord stage_from_json(const nlohmann::ordered_json&);
PipelineRecord pipeline_from_json(const nlohmann::ordered_json&);
RunRecord run_from_json(const nlohmann::ordered_json&);

}  // namespace syncopate::record
