#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "syncopate/base/fields.h"

namespace syncopate::spec {

/// Which columns of a table hold what, and how text files are written.
struct ColumnSpec {
  std::string text{}, text_pair{}, label{};
  std::string encoding = "utf-8";
  std::string separator = "auto";
};

/// One run, whole: everything that decides its result. Each group lists its fields once; flags, `--set`,
/// experiment files, spec.json and the run's hash come from that list.
struct RunSpec {
  struct Task {
    std::string name = "supersense";
    std::string data;
    std::string text, text_pair, label;
    std::string encoding = "utf-8";
    std::string separator = "auto";
    int64_t max_length = 0;
    bool shuffle = true;
    int64_t limit = 0;
    int64_t test_limit = 0;
    std::string validation = "auto";
    double mask_rate = 0.15;
    bool whole_words = false;
    std::string documents = "auto";
    std::string cache = "auto";
    int64_t stride = 128;
    bool augment = true;
    std::string auto_cache;  ///< no setting: where a cache that is auto lies; empty: nowhere
    void describe(Fields& fields);
    ColumnSpec columns() const { return {text, text_pair, label, encoding, separator}; }
  } task;

  struct Model {
    std::string name;
    std::string init_from;
    std::string vocab;
    int64_t vocab_size = 8000;
    double dropout = 0.1;
    double inner_dropout = 0;
    std::string batch_norm = "local";
    void describe(Fields& fields);
  } model;

  struct Strategy {
    std::string name = "ddp";
    bool whole = false;
    double bucket_mib = 25;
    double first_bucket_mib = 1;
    bool sparse_rows = true;
    bool share_update = true;
    bool overlap = true;
    bool overlap_average = false;
    int64_t every = 8;
    int64_t post_local_start = 0;
    std::string moments = "keep";
    double outer_lr = 0.7;
    double outer_momentum = 0.9;
    bool outer_nesterov = true;
    int64_t fragments = 1;
    int64_t delay = 0;
    double mixing = 0;
    std::string staleness = "inf";
    bool staleness_lr = false;
    int64_t servers = 1;
    std::string state = "own";
    void describe(Fields& fields);
  } strategy;

  struct Codec {
    std::string name = "none";
    double ratio = 0.01;
    int64_t rank = 4;
    double warmup = 0.2;
    std::string error_feedback = "auto";
    void describe(Fields& fields);
  } codec;

  struct Optim {
    std::string name = "adamw";
    double lr = 5e-4;
    double weight_decay = 0.01;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double momentum = 0.9;
    bool nesterov = false;
    double trust = 0.001;
    double warmup = 0.1;
    std::string schedule = "linear";
    std::string milestones = "0.5,0.75";
    double gamma = 0.1;
    double cycle = 0.2;
    double cycle_ratio = 10;
    double power = 2;
    double final_share = 0;
    std::string scaling = "none";
    int64_t base_batch = 256;
    double clip = 1;
    double label_smoothing = 0;
    double plateau_factor = 1;
    int64_t plateau_patience = 2;
    void describe(Fields& fields);
  } optim;

  struct Train {
    int64_t batch_size = 0;
    int64_t global_batch = 0;
    int64_t accumulate = 1;
    int64_t epochs = 0;
    int64_t steps = 0;
    int64_t seed = 0;
    std::string eval_every = "epoch";
    std::string save_every = "auto";
    int64_t eval_batch = 0;
    int64_t patience = 0;
    std::string keep = "auto";
    double time_limit = 0;
    bool arrange = true;
    bool balance = false;
    int64_t balance_every = 32;
    bool tensorboard = false;
    bool noise_scale = false;
    bool worker_evals = false;
    void describe(Fields& fields);
  } train;

  struct Comm {
    int64_t workers = 1;
    std::string backend = "auto";
    double timeout = 60;
    std::string fault;
    std::string slow;
    void describe(Fields& fields);
  } comm;

  struct Pipeline {
    int64_t stages = 1;
    std::string cut;
    std::string schedule = "1f1b";
    int64_t micro_batches = 0;
    std::string layout;
    void describe(Fields& fields);
  } pipeline;

  struct Activation {
    std::string codec = "none";
    int64_t forward_bits = 4;
    int64_t backward_bits = 8;
    std::string rounding = "nearest";
    std::string first_visit = "full";
    std::string buffer = "memory";
    std::string store = "fp32";
    double buffer_gib = 4;
    std::string eval = "plain";
    void describe(Fields& fields);
  } activation;

  struct Network {
    std::string name;
    std::string hosts;
    double scale = 1;
    void describe(Fields& fields);
  } network;

  struct Compute {
    int64_t threads = 0;
    std::string device = "cpu";
    std::string precision = "fp32";
    int64_t loader_threads = 1;
    bool recompute = false;
    bool graphs = true;
    bool mps = true;
    bool autotune = true;
    void describe(Fields& fields);
  } compute;

  void describe(Fields& fields);
  Fields fields();            ///< points into this spec
  void complete();            ///< names the task's smallest model where none was chosen
  std::string label() const;  ///< "ddp", "ddp, int8"
  std::string name();         ///< "supersense-bert-tiny-ddp-2w-<hash>", fit for a folder

  int64_t max_length() const;  ///< tokens of an example: as set, or the task's usual number
  int64_t eval_batch() const;  ///< likewise

  bool chooses() const;     ///< something about the run depends on evaluations while it goes on
  bool keeps_best() const;  ///< the model that is the result is the best of those evaluated, not the last
  /// What choices look at: neither of both: the run has none.
  struct Validation {
    double share = 0;  ///< of the training data
    std::string path;  ///< a file or folder of the task's form
    bool on() const { return share > 0 || !path.empty(); }
  };
  Validation validation() const;  ///< throws ConfigError

  bool runs_free() const;              ///< workers update when they are ready, without waiting for each other
  int64_t servers() const;             ///< processes beside the workers that hold the model
  int64_t staleness_bound() const;     ///< -1: none. Throws ConfigError
  double slowness_of(int rank) const;  ///< how many times as long its steps take, by comm.slow

  /// When checkpoints are saved, by train.save_every; also at the end, and when the run is interrupted.
  struct Saving {
    int64_t steps = 0;    ///< 0: not by steps
    bool epochs = false;  ///< at the end of each
    double seconds = 0;   ///< 0: not by the clock
  };
  Saving saving() const;  ///< throws ConfigError

  /// Of a model that is cut into pipeline stages, each worker holds one: workers = stages x replicas.
  int64_t replicas() const { return comm.workers / std::max<int64_t>(1, pipeline.stages); }
  /// Into how many micro-batches a pipeline cuts each part of a replica's batch (train.accumulate parts); 1
  /// without stages. Throws ConfigError.
  int64_t micro_batches() const;
  /// The rank of each stage's replicas, [stage][replica]. Throws ConfigError where pipeline.layout is none.
  std::vector<std::vector<int>> layout() const;

  /// Examples per optimizer step over all workers. Throws ConfigError when the batch settings do not fit.
  int64_t examples_per_step() const;
  /// Throws ConfigError for settings that no run could use, alone or together. Looks at nothing but them: no
  /// file, no device.
  void validate() const;
};

/// Settings in which the ranks of a run may differ: where things are (what they hold is compared once it is
/// read), how a machine is used, when to give up.
bool may_differ_between_ranks(const std::string& field);

/// What a setting that is not what it was does to a run that resumes.
enum class Change {
  kNothing,  ///< the same run: where things are, how a machine is used, when to save, how many workers share
             ///< a global batch
  kExtends,  ///< another run from here on: how long it goes on, at which rate; on request (--extend)
  kRefused,  ///< nothing of the run would fit: its data, model, strategy, seed or batches
};
Change change_on_resume(const std::string& field);

}  // namespace syncopate::spec
