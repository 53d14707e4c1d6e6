#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "syncopate/tensor/batch.h"

namespace syncopate::nn {

/// One number for each row of a tensor: which row of the noise it is.
using NoiseRows = std::shared_ptr<const std::vector<uint64_t>>;

/// A step's key and the rows of a batch in a GPU's memory, where a recorded graph finds new ones in every
/// step.
struct DeviceRows {
  at::Tensor key;        ///< int64 [1]
  at::Tensor examples;   ///< int64 [B], hashed
  at::Tensor positions;  ///< int64: those of [B, each] that the tensor at hand has; undefined: all
  int64_t each = 1;      ///< positions of an example
};

/// Dropout without stored masks: whether the element in `column` of row `row` is dropped is a hash of (key,
/// row, column), so that the backward pass computes it again. With the rows of a batch (rows_of) it depends
/// on the example and the position in it, and not on what else is in the batch: any split over threads,
/// micro-batches or workers drops the same elements.
struct Noise {
  uint64_t key = 0;
  uint32_t drop_below = 0;  ///< an element is dropped where its 32-bit hash is below; 0 drops nothing
  float scale = 1;          ///< of the elements kept, so that the mean stays
  NoiseRows rows{};         ///< of the tensor at hand; null: row r is row r of the noise
  /// What kernels on a GPU draw from: the same noise, by numbers in the device's memory. Null: not there.
  std::shared_ptr<const DeviceRows> device{};
  int64_t site = 0;  ///< `key` is that of the step and this

  bool active() const { return drop_below > 0; }
};

/// Noise that drops the share `rate` (0 <= rate < 1).
Noise make_noise(uint64_t key, double rate);

/// Of tensors with `each` rows for every example: one for each id and place in the example. With one each,
/// those of the first places.
NoiseRows rows_of(std::span<const int64_t> ids, int64_t each);
/// Those of a batch's [B, L, ...] tensors.
NoiseRows rows_of(const tensor::Batch& batch, const at::Tensor& tokens_BL);
/// Of these, the ones at `positions` (int64, on any device).
NoiseRows chosen_rows(const NoiseRows& rows_BL, const at::Tensor& positions);

/// What a batch on a GPU draws from, if it says so (Batch::with_noise), for tensors of `each` rows an
/// example.
std::shared_ptr<const DeviceRows> device_rows(const tensor::Batch& batch, int64_t each,
                                              const at::Tensor& positions = {});

/// What the elements of a [rows, columns] tensor are multiplied by: 0 or `scale`. The reference that kernels
/// must agree with, for any device; slow.
at::Tensor noise_factors(const Noise& noise, int64_t rows, int64_t columns, const at::TensorOptions& options);

/// `x` times its factors, taken as rows of its last dimension. Differentiable. On a GPU the library's own
/// dropout is used, several times faster there than our hash: it drops other elements than the CPU, by the
/// place in the batch, and replicas that share a process and a GPU draw from one stream. See
/// seed_device_noise.
at::Tensor apply_noise(const at::Tensor& x, const Noise& noise);
/// The same of probabilities, where every head has a noise of its own over the rows b * Q + q.
at::Tensor apply_noise_by_head(const at::Tensor& probs_BHQL, const Noise& noise);

/// Makes the dropouts that follow on a GPU a function of `key` and the first of the examples; does nothing
/// for the CPU.
void seed_device_noise(c10::Device device, uint64_t key, std::span<const int64_t> ids);

}  // namespace syncopate::nn
