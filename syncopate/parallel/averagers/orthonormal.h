#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace syncopate::parallel {

/// Makes the rows of an fp32 matrix on the CPU orthonormal, one after another, in double. A row that the ones
/// before it already span (or zero) becomes zero; with a key it becomes a random one instead, so that all
/// rows stay of use. The same input gives the same bits on every rank.
void orthonormalize(const at::Tensor& rows, std::optional<uint64_t> key = std::nullopt);

}  // namespace syncopate::parallel
