#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "syncopate/nn/layers/noise.h"
#include "syncopate/tensor/batch.h"

namespace syncopate::nn {

/// Where the real tokens of a padded batch [B, L] are. Packed, a tensor [B, L, D] is [1, N, D]: the rows of
/// its texts one after the other, without padding.
struct Packing {
  int64_t length = 0;           ///< L
  std::vector<int64_t> starts;  ///< [B + 1]: each text's first row, and N
  std::vector<int64_t> areas;   ///< [B + 1]: sums of squared lengths
  at::Tensor places_N;          ///< int64: a row's place in the padded batch, b L + l
  at::Tensor positions_N;       ///< int64: l
  at::Tensor firsts_B;          ///< int64: each text's first row

  int64_t examples() const { return static_cast<int64_t>(starts.size()) - 1; }
  int64_t rows() const { return starts.back(); }
};
using Packed = std::shared_ptr<const Packing>;  ///< null: padded

/// Of a batch on the CPU with padding behind its texts; null for any other, and where a text is empty.
Packed packing_of(const tensor::Batch& batch);

at::Tensor pack(const at::Tensor& x_BLD, const Packing& packing);    ///< [1, N, D], differentiable
at::Tensor unpack(const at::Tensor& x_1ND, const Packing& packing);  ///< [B, L, D]; zeros where padding is

/// The rows where the places b L + l are; all are a text's.
at::Tensor packed_rows(const at::Tensor& places, const Packing& packing);
/// Of the noise: what rows_of gives for the same places.
NoiseRows rows_of(const tensor::Batch& batch, const Packing& packing);

}  // namespace syncopate::nn
