#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace syncopate::parallel {

/// Makes the rows of each fp32 matrix orthonormal, one after another, in double; all are on the host or on
/// one GPU. A row that the ones before it already span (or zero) becomes zero; with keys, one for each
/// matrix, it becomes a random one instead, so that all rows stay of use. The same input gives the same bits
/// on every rank.
void orthonormalize(const std::vector<at::Tensor>& matrices, const std::vector<uint64_t>& keys = {});

}  // namespace syncopate::parallel
