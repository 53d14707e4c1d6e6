#pragma once

#include "syncopate/tensor/batch.h"

namespace syncopate::nn {

/// cross_entropy(hidden_ND · table_VD^T, labels_N) without ever holding all logits: a language model's are
/// far larger than anything else in it. A few rows at a time are made, summed up and turned into gradients at
/// once, in the forward pass. Rows whose label is kNoLabel are left out on the CPU. Throws DataError as
/// cross_entropy does.
tensor::Loss head_loss(const at::Tensor& hidden_ND, const at::Tensor& table_VD, const at::Tensor& labels_N);

}  // namespace syncopate::nn
