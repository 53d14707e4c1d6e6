#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace syncopate::nn {

/// Dropout without stored masks: whether the element in `column` of row `row` is dropped is a hash of (key,
/// row, column), so that the backward pass computes it again, and any split of the rows over threads or
/// kernels drops the same elements.
struct Noise {
  uint64_t key = 0;
  uint32_t drop_below = 0;  ///< an element is dropped where its 32-bit hash is below; 0 drops nothing
  float scale = 1;          ///< of the elements kept, so that the mean stays
  int64_t row_step = 1;     ///< row r of the tensor at hand is row r * row_step of the noise

  bool active() const { return drop_below > 0; }
};

/// Noise that drops the share `rate` (0 <= rate < 1).
Noise make_noise(uint64_t key, double rate);

/// What the elements of a [rows, columns] tensor are multiplied by: 0 or `scale`. The reference that kernels
/// must agree with, for any device; slow.
at::Tensor noise_factors(const Noise& noise, int64_t rows, int64_t columns, const at::TensorOptions& options);

/// `x` times its factors, taken as rows of its last dimension. Differentiable. On a GPU the library's own
/// dropout is used, several times faster there than our hash: it drops other elements than the CPU, and
/// replicas that share a process and a GPU draw from one stream. See seed_device_noise.
at::Tensor apply_noise(const at::Tensor& x, const Noise& noise);

/// Makes the dropouts that follow on a GPU a function of `key`; does nothing for the CPU.
void seed_device_noise(c10::Device device, uint64_t key);

}  // namespace syncopate::nn
