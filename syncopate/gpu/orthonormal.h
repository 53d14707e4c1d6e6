#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace syncopate::gpu {

/// Makes the rows of fp32 matrices on a GPU orthonormal, as parallel/averagers/orthonormal.h does on the
/// host: sums have the same order. `keys`: one for each matrix, or none; rows that are replaced by random
/// ones may differ from the host's in the last place.
void orthonormalize(const std::vector<at::Tensor>& matrices, const std::vector<uint64_t>& keys);

}  // namespace syncopate::gpu
