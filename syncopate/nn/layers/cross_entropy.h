#pragma once

#include "syncopate/tensor/batch.h"

namespace syncopate::nn {

/// A label that asks for nothing: it adds neither to the sum nor to the count.
inline constexpr int64_t kNoLabel = -100;

/// How many labels ask for something.
int64_t labels_asked(const at::Tensor& labels);

/// Cross entropy summed over the rows of `logits_NC` whose label is not kNoLabel. With `smoothing` s the
/// target is 1 - s on the label plus s / C on every class. In fp32 whatever the logits are. Throws DataError
/// (on the CPU, where looking costs nothing) for a label that is no class.
tensor::Loss cross_entropy(const at::Tensor& logits_NC, const at::Tensor& labels_N, double smoothing = 0);

}  // namespace syncopate::nn
