#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace syncopate::optim {

/// The Euclidean norm of the whole flat gradient, as if it were multiplied by `scale`; of any floating type,
/// on any device (for which it waits).
double gradient_norm(const at::Tensor& flat, double scale);

// Its parts, for ranks that compute one norm together: of fp32 on a CPU, by blocks.
constexpr int64_t kNormBlock = 1 << 16;
constexpr int64_t norm_blocks(int64_t size) { return (size + kNormBlock - 1) / kNormBlock; }
/// Sets squares[from..to-1] to the sums of squares of those blocks.
void squares_of_blocks(const at::Tensor& flat, int64_t from, int64_t to, double* squares);
double norm_of_blocks(const double* squares, int64_t blocks, double scale);

/// The factor that brings a gradient of this norm to at most `limit`; 1 when it is below, or when limit is 0
/// (off).
double clip_factor(double norm, double limit);

}  // namespace syncopate::optim
