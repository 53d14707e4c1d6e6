#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/comm/metering/metered.h"
#include "syncopate/data/dataset.h"
#include "syncopate/parallel/strategy.h"
#include "syncopate/record/record.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::test {

/// A small classification data set of random tokens, examples of different lengths.
std::shared_ptr<const data::Dataset> toy_data(int64_t size, uint64_t seed);

/// One training run with ranks as threads of this process.
struct Rig {
  spec::RunSpec::Strategy strategy;
  spec::RunSpec::Codec codec{};
  spec::RunSpec::Optim optim;
  int workers = 1;
  int64_t global_batch = 12;
  int accumulate = 1;
  int64_t steps = 50;
  int64_t examples = 70;  ///< not a multiple of the batch: the last one of an epoch is partial
  double dropout = 0;
  bool plain = false;          ///< the model computes with ATen's operations alone
  bool noise_by_rank = false;  ///< the usual way: every worker draws dropout of its own
  uint64_t seed = 3;
  int64_t eval_every = 0;
  int64_t save_every = 0;
  std::filesystem::path checkpoint;
  bool resume = false;
  /// Instead of the strategy named above, one that has no name.
  std::function<std::unique_ptr<parallel::Strategy>(comm::Group&)> make{};
  bool arrange = false;  ///< texts by length; else workers have contiguous shares, whatever the strategy
  bool mean_of_means = false;  ///< the usual mistake: every worker's own mean counts the same
  int64_t stop_after = 0;      ///< asks for an end in this step; 0: never
  /// Balance shares where rank r seems to need so many seconds for an example, or for a token where texts are
  /// arranged across workers; empty: equal shares.
  std::vector<double> seconds_per_example{};
  int64_t balance_every = 16;
  int64_t patience = 0;
  std::string keep = std::string("last");
  double plateau_factor = 1;
  double time_limit = 0;
  /// By rank: how many steps its clock sees pass in a second; with time_limit.
  std::vector<double> steps_per_second{};
  bool noise_scale = false, worker_evals = false;
  bool share = false;  ///< ranks keep one set of parameters; else a law can see whether theirs are equal
};

struct Trace {
  std::vector<double> losses;                     ///< global mean, by step
  std::vector<at::Tensor> parameters;             ///< flat, by rank
  bool shared = false;                            ///< the ranks share the update
  std::vector<std::vector<double>> own_losses{};  ///< by rank and step; not a number without examples
  std::vector<double> bytes{};                    ///< sent by rank 0, by step
  double accuracy = 0;
  std::vector<record::EvalRecord> evals{};
  std::vector<std::pair<int64_t, at::Tensor>> saved{};  ///< steps done and the parameters of each checkpoint
  std::vector<int64_t> updates{};                       ///< by worker, where they run free
  std::vector<std::vector<int64_t>> staleness{};
  std::string evaluated{};           ///< which model that is the accuracy of
  std::vector<int64_t> shares{};     ///< at the end
  std::vector<double> rates{};       ///< by step
  std::vector<std::string> ended{};  ///< why, by rank
  std::vector<int64_t> steps{};      ///< by rank
  std::vector<std::string> notes{};  ///< of a run that resumed
  std::string start_hash{};
  std::optional<record::EvalRecord> test{}, validation{};  ///< of the model that was kept
  int64_t kept_step = 0;
  std::optional<comm::Meter> sent{};  ///< by all ranks together
  double bytes_sent = 0;              ///< likewise
  std::vector<record::StepRecord> records{};
  double noise_scale = 0;
  std::vector<record::EvalRecord> worker_evals{};
};

/// With `rig.strategy` parameter-server its servers are threads of their own beside the workers.
Trace train(const Rig& rig);

/// The rig's run, stopped in step `stop_after` with a checkpoint at `path` and resumed: `before` is the first
/// part, `after` the second, `losses` those of both.
struct Resumed {
  Rig first, second;  ///< to make the parts again
  Trace before, after;
  std::vector<double> losses;
};
Resumed stopped_and_resumed(const Rig& straight, const std::filesystem::path& path, int64_t stop_after);

/// The model in a checkpoint, flat.
at::Tensor saved_parameters(const std::filesystem::path& checkpoint);

/// The test score of a model with these (flat) parameters, computed by so many ranks.
record::EvalRecord evaluate_parameters(const at::Tensor& parameters, int workers);

/// The largest relative difference between two loss traces of one length.
double difference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace syncopate::test
