#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "syncopate/nn/layers/noise.h"

namespace syncopate::nn {

struct CausalOptions {
  int64_t heads = 1;
  Noise noise;         ///< of each head's probabilities: row b L + query, column: the position attended to
  bool causal = true;  ///< false lets every position see every other: for comparison
  bool plain = false;  ///< ATen's operations even where our kernels could run: for comparison
};

/// Attention in which position l sees positions 0..l: [B, L, D] from queries, keys and values side by side
/// in `qkv_BLE` (E = 3 D). `mask_BL` is added to the scores of each position attended to (0, or hugely
/// negative for padding); it may be undefined. On the CPU in fp32 it runs on kernels of our own, which leave
/// out what lies after each query; on CUDA without padding or noise on the library's fused attention.
at::Tensor causal_attention(const at::Tensor& qkv_BLE, const at::Tensor& mask_BL,
                            const CausalOptions& options);

}  // namespace syncopate::nn
