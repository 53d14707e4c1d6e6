#pragma once

#include <functional>
#include <string>

#include "syncopate/comm/group.h"
#include "syncopate/data/dataset.h"
#include "syncopate/nn/model.h"
#include "syncopate/parallel/engine.h"
#include "syncopate/record/record.h"
#include "syncopate/tensor/precision.h"
#include "syncopate/train/metric.h"

namespace syncopate::train {

struct EvalOptions {
  int64_t batch_size = 64;
  parallel::Engine* engine = nullptr;  ///< computes the outputs; null: the model, which is whole
  /// Among whom the batches are shared; null: the ranks that score. Of a model in stages: the replicas.
  const comm::Group* sharers = nullptr;
  tensor::Precision precision = tensor::Precision::kFp32;
  std::string split = "test";  ///< what the examples are, for the record
};

/// Calls `use(output, batch)` for every batch of `first..last-1`, in order, with dropout off and no
/// gradients; both are on the model's device. Of a model in stages the last one has outputs.
void for_each_output(nn::Model& model, const data::Dataset& dataset, int64_t first, int64_t last,
                     const EvalOptions& options,
                     const std::function<void(const at::Tensor& output, const tensor::Batch& batch)>& use);

/// Scores the model on the whole data set. Each replica takes a share of the batches; their sums are
/// exchanged and added in order, so the loss is that of one rank alone, bit for bit. Collective; the same on
/// every rank.
record::EvalRecord evaluate(nn::Model& model, const data::Dataset& dataset, comm::Group& group,
                            Metric& metric, const EvalOptions& options);

}  // namespace syncopate::train
