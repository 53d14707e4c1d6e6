#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "syncopate/parallel/trace.h"
#include "syncopate/record/record.h"
#include "syncopate/spec/run_spec.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tensor/precision.h"

namespace syncopate::test {

/// A run of the real program's parts (what the task's family makes of the spec) with spec.comm.workers ranks
/// as threads of this process.
struct FamilyRun {
  spec::RunSpec spec;
  std::filesystem::path checkpoint{}, buffers{};
  bool resume = false;
  int64_t stop_after = 0;      ///< asks for an end in this step; 0: never
  bool mean_of_means = false;  ///< the usual mistake: every worker's own mean counts the same
  tensor::Precision precision = tensor::Precision::kFp32;  ///< also where a run would decline it
  std::vector<parallel::Trace*> traces{};  ///< by rank: where its steps are noted; empty: nowhere
};

struct FamilyTrace {
  std::vector<double> losses;          ///< global mean, by step
  std::vector<at::Tensor> parameters;  ///< flat, by rank
  bool shared = false;                 ///< the ranks share the update
  std::vector<at::Tensor> buffers;     ///< all in one, by rank; empty where the model has none
  at::Tensor whole{};                  ///< rank 0's model as it would be saved, buffers too
  std::string start_hash{};
  /// Of a model in stages, by rank and step: checksums of what it remembers before and behind it.
  std::vector<std::vector<std::pair<uint64_t, uint64_t>>> remembered{};
  std::vector<int64_t> own_counts;  ///< by rank: what its loss was a sum over, in the first step
  record::EvalRecord eval;
};

/// A spec for small data: few words, short texts, dropout, steps past an epoch's uneven end.
spec::RunSpec small_spec(const std::string& task, const std::string& data);

FamilyTrace train(const FamilyRun& run);

/// The same spec for so many workers.
FamilyRun with_workers(spec::RunSpec spec, int workers, const std::string& strategy = "all-reduce");

/// Calls `use` with what the family makes of the spec, on every rank, one after the other.
void for_each_rank_setup(const spec::RunSpec& spec, const std::function<void(tasks::TaskSetup&)>& use);

double difference(const at::Tensor& a, const at::Tensor& b);  ///< largest, in units of the largest of a

}  // namespace syncopate::test
