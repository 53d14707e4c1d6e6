#include "syncopate/train/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "syncopate/base/clock.h"
#include "syncopate/data/sampler.h"

namespace syncopate::train {

void for_each_output(nn::Model& model, const data::Dataset& dataset, int64_t first, int64_t last,
                     int64_t batch_size,
                     const std::function<void(const at::Tensor& output, const tensor::Batch& batch)>& use) {
  const at::NoGradGuard no_grad;
  model.set_mode({.training = false});
  std::vector<int64_t> ids;
  for (int64_t begin = first; begin < last; begin += batch_size) {
    ids.resize(static_cast<size_t>(std::min(batch_size, last - begin)));
    std::iota(ids.begin(), ids.end(), begin);
    const tensor::Batch batch = dataset.collate(ids, data::kEvaluationDraw);
    use(model.forward(batch), batch);
  }
}

record::EvalRecord evaluate(nn::Model& model, const data::Dataset& dataset, comm::Group& group,
                            int64_t batch_size) {
  const Stopwatch watch;
  const auto share = data::evaluation_share(dataset.size(), group.size(), group.rank());
  at::Tensor sums = at::zeros({3}, at::kDouble);  // loss, count, right answers
  double* const sum = sums.data_ptr<double>();
  for_each_output(model, dataset, share.begin, share.end, batch_size,
                  [&](const at::Tensor& output, const tensor::Batch& batch) {
                    const tensor::Loss loss = model.loss(output, batch);
                    sum[0] += loss.sum.item<double>();
                    sum[1] += static_cast<double>(loss.count);
                    sum[2] += output.argmax(-1).eq(batch.at("labels")).sum().item<double>();
                  });
  group.all_reduce(sums, comm::Op::kSum).wait();
  record::EvalRecord record;
  const double count = std::max(1.0, sum[1]);
  record.loss = sum[0] / count;
  record.examples = static_cast<int64_t>(sum[1]);
  record.measures["accuracy"] = sum[2] / count;
  record.seconds = watch.seconds();
  return record;
}

}  // namespace syncopate::train
