#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <span>
#include <vector>

#include "syncopate/nn/layers/noise.h"

namespace syncopate::nn {

/// While one lives, torch's own dropout (torch::nn::Dropout, Dropout2d, Dropout3d) on this thread and on the
/// CPU is a function of (key, the example's id, which dropout of the forward pass this is, the element within
/// the example), as in the models here: the same in any batch and on any worker. Examples are the rows of a
/// tensor's first dimension, or equal numbers of consecutive rows; where that does not come out even, noise
/// follows the place in the batch. On a GPU it is a function of the key and the batch.
class ExampleNoise {
 public:
  ExampleNoise(uint64_t key, std::span<const int64_t> ids, c10::Device device);
  ~ExampleNoise();
  ExampleNoise(const ExampleNoise&) = delete;
  ExampleNoise& operator=(const ExampleNoise&) = delete;

  /// Of a tensor with `leading` rows in its first dimension, `inner` rows in each: one number for each row.
  NoiseRows rows(int64_t leading, int64_t inner) const;
  uint64_t next_place();  ///< the key of the next dropout of this forward pass

 private:
  uint64_t key_;
  std::vector<int64_t> ids_;
  uint64_t places_ = 0;
  ExampleNoise* outer_;
};

}  // namespace syncopate::nn
