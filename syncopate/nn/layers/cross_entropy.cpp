#include "syncopate/nn/layers/cross_entropy.h"

#include <ATen/ATen.h>

#include "syncopate/base/error.h"
#include "syncopate/gpu/graph.h"

namespace syncopate::nn {

int64_t labels_asked(const at::Tensor& labels) { return labels.ne(kNoLabel).sum().item<int64_t>(); }

tensor::Loss cross_entropy(const at::Tensor& logits_NC, const at::Tensor& labels_N, double smoothing) {
  const int64_t classes = logits_NC.size(1);
  const at::Tensor asked_N = labels_N.ne(kNoLabel);
  // Nobody can look at a device's memory while a graph is recorded: who records counts by Model::count.
  const int64_t count = gpu::capturing(labels_N.device()) ? 0 : asked_N.sum().item<int64_t>();
  if (labels_N.is_cpu() && labels_N.numel() > 0 &&
      asked_N.logical_and(labels_N.lt(0).logical_or(labels_N.ge(classes))).any().item<bool>()) {
    throw DataError("a batch has a label outside 0..{}; give the model as many classes as the data has",
                    classes - 1);
  }
  return {
      at::cross_entropy_loss(logits_NC.to(at::kFloat), labels_N, {}, at::Reduction::Sum, kNoLabel, smoothing),
      count};
}

}  // namespace syncopate::nn
