#pragma once

#include <cstdint>

#include "syncopate/gpu/cuda/codec_jobs.h"

// What the kernels of codecs share. The bits are those of codec/kernels: nothing is contracted.
namespace syncopate::gpu {

constexpr uint32_t kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u, kNoNumber = 0x7fc00000u;

__device__ inline uint32_t magnitude(float x) { return __float_as_uint(x) & kMagnitude; }
__device__ inline bool is_finite(float x) { return magnitude(x) < kInfinity; }

inline unsigned blocks_for(int64_t count, int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

/// Bytes of a message whose values need not begin at a multiple of four.
__device__ inline void store_value(uint8_t* to, float value) {
  const uint32_t bits = __float_as_uint(value);
  auto* const halves = reinterpret_cast<uint16_t*>(to);
  halves[0] = static_cast<uint16_t>(bits);
  halves[1] = static_cast<uint16_t>(bits >> 16);
}
__device__ inline float load_value(const uint8_t* from) {
  const auto* const halves = reinterpret_cast<const uint16_t*>(from);
  return __uint_as_float(halves[0] | static_cast<uint32_t>(halves[1]) << 16);
}

}  // namespace syncopate::gpu
