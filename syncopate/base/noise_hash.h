#pragma once

#include <cstdint>

// The hash behind dropout, apart so that kernels for CPUs and GPUs and tensor code share one definition. Everything is static:
// this header is compiled for several instruction sets, and a linker may pick any copy of a shared function.
namespace syncopate::noise_hash {

/// The hash of (seed of the row, column):
///   x = column * kColumnStep ^ low(seed);    x = (x ^ x >> kShift1) * kFactor1 ^ high(seed)
///   x = (x ^ x >> kShift2) * kFactor2;       x ^ x >> kShift3
static constexpr uint32_t kColumnStep = 0x9E3779B1;
static constexpr uint32_t kFactor1 = 0x7FEB352D;
static constexpr uint32_t kFactor2 = 0x846CA68B;
static constexpr int kShift1 = 16;
static constexpr int kShift2 = 15;
static constexpr int kShift3 = 16;

static constexpr uint64_t kRowStep = 0xD1342543DE82EF95ULL;
static constexpr uint64_t kHeadStep = 0xA0761D6478BD642FULL;
static constexpr uint64_t kRowFactor1 = 0xBF58476D1CE4E5B9ULL;
static constexpr uint64_t kRowFactor2 = 0x94D049BB133111EBULL;
static constexpr int kRowShift1 = 30;
static constexpr int kRowShift2 = 27;
static constexpr int kRowShift3 = 31;

/// 64 unrelated bits for each row of the noise; of attention: of each head.
static inline uint64_t row_seed(uint64_t key, uint64_t row, uint64_t head) {
  uint64_t x = key + (row + 1) * kRowStep + head * kHeadStep;
  x = (x ^ (x >> kRowShift1)) * kRowFactor1;
  x = (x ^ (x >> kRowShift2)) * kRowFactor2;
  return x ^ (x >> kRowShift3);
}

}  // namespace syncopate::noise_hash
