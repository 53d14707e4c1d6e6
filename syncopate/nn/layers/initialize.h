#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace syncopate::nn {

/// A leaf that requires a gradient, its values not yet set.
at::Tensor parameter(at::IntArrayRef shape);

/// Fills `tensor` with normal(0, deviation) values that depend on `key` alone, whatever the number of
/// threads.
void fill_normal(const at::Tensor& tensor, double deviation, uint64_t key);
void fill_uniform(const at::Tensor& tensor, double bound, uint64_t key);  ///< in [-bound, bound)

}  // namespace syncopate::nn
