#include "syncopate/train/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/data/sampler.h"
#include "syncopate/parallel/engines/local_engine.h"

namespace syncopate::train {

void for_each_output(nn::Model& model, const data::Dataset& dataset, int64_t first, int64_t last,
                     const EvalOptions& options,
                     const std::function<void(const at::Tensor& output, const tensor::Batch& batch)>& use) {
  const int64_t batches = (std::max(first, last) - first + options.batch_size - 1) / options.batch_size;
  const auto make = [&](int64_t number) {
    const int64_t begin = first + number * options.batch_size;
    std::vector<int64_t> ids(static_cast<size_t>(std::min(options.batch_size, last - begin)));
    std::iota(ids.begin(), ids.end(), begin);
    return dataset.collate(ids, data::kEvaluationDraw);
  };
  parallel::LocalEngine alone;
  parallel::Engine& engine = options.engine != nullptr ? *options.engine : alone;
  engine.infer(model, options.precision, batches, make, use);
}

record::EvalRecord evaluate(nn::Model& model, const data::Dataset& dataset, comm::Group& group,
                            Metric& metric, const EvalOptions& options) {
  const Stopwatch watch;
  const int64_t batches = (dataset.size() + options.batch_size - 1) / options.batch_size;
  const comm::Group& sharers = options.sharers != nullptr ? *options.sharers : group;
  const data::Range mine = data::share(batches, sharers.size(), sharers.rank());
  const at::Tensor by_batch = at::zeros({2, batches}, at::kDouble);  // 0 where others score: adding is exact
  double* const losses = by_batch.data_ptr<double>();
  double* const counts = losses + batches;
  int64_t at = mine.begin;
  for_each_output(model, dataset, mine.begin * options.batch_size,
                  std::min(mine.end * options.batch_size, dataset.size()), options,
                  [&](const at::Tensor& output, const tensor::Batch& batch) {
                    const tensor::Loss loss = model.loss(output, batch);
                    losses[at] = loss.sum.item<double>();
                    counts[at++] = static_cast<double>(loss.count);
                    metric.add(output, batch);
                  });
  if (batches > 0) group.all_reduce(by_batch, comm::Op::kSum).wait();
  const double loss = std::accumulate(losses, losses + batches, 0.0);
  const double count = std::accumulate(counts, counts + batches, 0.0);
  if (count == 0 && dataset.size() > 0) {
    throw DataError(
        "the {} data have nothing to score: no word of them is known; does the vocabulary fit them?",
        options.split);
  }
  record::EvalRecord record;
  record.split = options.split;
  record.loss = loss / std::max(1.0, count);
  record.examples = dataset.size();
  // Answers taken from what is no number mean nothing (and cannot be sent as text): every rank sees that.
  if (std::isfinite(record.loss)) metric.conclude(group, record);
  record.seconds = watch.seconds();
  return record;
}

}  // namespace syncopate::train
