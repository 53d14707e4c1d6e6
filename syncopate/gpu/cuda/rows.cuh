#pragma once

#include <cuda_bf16.h>

#include "syncopate/base/noise_hash.h"
#include "syncopate/gpu/cuda/jobs.h"

// Rows of bf16 in vectors of eight, a warp to a row, and the hash behind dropout.
namespace syncopate::gpu {

constexpr int kWarp = 32;
constexpr int kVector = 8;
constexpr unsigned kAll = 0xFFFFFFFFu;

struct Eight {
  float at[kVector];
};

__device__ inline Eight load(const __nv_bfloat16* from) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  const auto* const pairs = reinterpret_cast<const __nv_bfloat162*>(&raw);
  Eight made;
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i) {
    const float2 pair = __bfloat1622float2(pairs[i]);
    made.at[2 * i] = pair.x;
    made.at[2 * i + 1] = pair.y;
  }
  return made;
}

__device__ inline void store(__nv_bfloat16* to, const Eight& eight) {
  uint4 raw;
  auto* const pairs = reinterpret_cast<__nv_bfloat162*>(&raw);
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i)
    pairs[i] = __floats2bfloat162_rn(eight.at[2 * i], eight.at[2 * i + 1]);
  *reinterpret_cast<uint4*>(to) = raw;
}

__device__ inline Eight load(const float* from) {
  const float4 low = *reinterpret_cast<const float4*>(from),
               high = *reinterpret_cast<const float4*>(from + 4);
  return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

__device__ inline float sum_of_warp(float value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kAll, value, offset);
  return value;
}

/// base/rng.h's mix, which is not for devices.
__device__ inline uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// The noise of one row.
class RowNoise {
 public:
  __device__ RowNoise(const DropJob& job, int64_t row) : below_(job.below), scale_(job.scale) {
    using namespace noise_hash;
    if (below_ == 0) return;
    const int64_t position = job.positions != nullptr ? job.positions[row] : row;
    const uint64_t number = job.examples[position / job.each] + static_cast<uint64_t>(position % job.each);
    const uint64_t key = mixed(mixed(*job.key) ^ job.site);
    uint64_t x = key + (number + 1) * kRowStep;
    x = (x ^ (x >> kRowShift1)) * kRowFactor1;
    x = (x ^ (x >> kRowShift2)) * kRowFactor2;
    x ^= x >> kRowShift3;
    low_ = static_cast<uint32_t>(x);
    high_ = static_cast<uint32_t>(x >> 32);
  }

  __device__ float factor(uint32_t column) const {
    using namespace noise_hash;
    uint32_t x = (column * kColumnStep) ^ low_;
    x = ((x ^ (x >> kShift1)) * kFactor1) ^ high_;
    x = (x ^ (x >> kShift2)) * kFactor2;
    x ^= x >> kShift3;
    return x < below_ ? 0.0f : scale_;
  }

  __device__ void apply(Eight& eight, int64_t first_column) const {
    if (below_ == 0) return;
#pragma unroll
    for (int i = 0; i < kVector; ++i) eight.at[i] *= factor(static_cast<uint32_t>(first_column) + i);
  }

 private:
  uint32_t below_, low_ = 0, high_ = 0;
  float scale_;
};

}  // namespace syncopate::gpu
