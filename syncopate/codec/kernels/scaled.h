#pragma once

#include "syncopate/codec/kernels/lanes.h"

// A bucket is one fp32 scale and a few bits for each number. A bucket with a number that is not finite has a
// scale that is none, so all of it decodes to that.
namespace syncopate::codec::kernels::SYNCOPATE_ISA {

/// Steps of a bucket whose largest magnitude becomes `levels`; `up` is 1 / scale.
struct Steps {
  float scale, up;
};

SYNCOPATE_INLINE Steps steps_of(uint32_t largest, float levels) {
  if (largest >= kInfinity) return {__builtin_nanf(""), 0};
  float most;
  __builtin_memcpy(&most, &largest, sizeof most);
  if (most < 0x1p-110f) return {0, 0};                     // its inverse would overflow; the rest keeps it
  most = most > 0x1.fffff8p127f ? 0x1.fffff8p127f : most;  // levels * scale stays finite
  return {most / levels, levels / most};
}

/// To nearest: adding 1.5 * 2^23 leaves the whole number in the low bits.
SYNCOPATE_INLINE Ints rounded(Floats x) { return (Ints)(x + 0x1.8p23f) - 0x4b400000; }

struct Int8 {
  static constexpr int64_t kBucket = 512, kBytes = 4 + kBucket;
  static int64_t bytes(int64_t count) { return 4 + count; }

  SYNCOPATE_INLINE void encode(const float* from, uint8_t* into, int64_t) {
    const Steps steps = steps_of(largest_magnitude(from, kBucket), 127);
    store(into, steps.scale);
    for (int64_t i = 0; i < kBucket; i += kLanes) {
      store(into + 4 + i, narrow(rounded(load<Floats>(from + i) * steps.up)));
    }
  }

  template <typename Use>
  SYNCOPATE_INLINE void decode(const uint8_t* from, const Use& use) {
    const float scale = load<float>(from);
    for (int64_t i = 0; i < kBucket; i += kLanes) {
#if defined(__AVX512F__)
      const Ints codes = (Ints)_mm512_cvtepi8_epi32(load<__m128i>(from + 4 + i));
#else
      const Ints codes = __builtin_convertvector(load<Bytes>(from + 4 + i), Ints);
#endif
      use(i, __builtin_convertvector(codes, Floats) * scale);
    }
  }
};

/// Byte j holds number j in its low half and number j + bucket / 2 in its high one, each 8 too large.
struct Int4 {
  static constexpr int64_t kBucket = 128, kHalf = kBucket / 2, kBytes = 4 + kHalf;
  static int64_t bytes(int64_t count) { return 4 + (count < kHalf ? count : kHalf); }

  SYNCOPATE_INLINE void encode(const float* from, uint8_t* into, int64_t) {
    const Steps steps = steps_of(largest_magnitude(from, kBucket), 7);
    store(into, steps.scale);
    for (int64_t i = 0; i < kHalf; i += kLanes) {
      const Ints low = rounded(load<Floats>(from + i) * steps.up) + 8;
      const Ints high = rounded(load<Floats>(from + kHalf + i) * steps.up) + 8;
      store(into + 4 + i, narrow((low | (high << 4)) - 128) ^ static_cast<int8_t>(-128));
    }
  }

  template <typename Use>
  SYNCOPATE_INLINE void decode(const uint8_t* from, const Use& use) {
    const float scale = load<float>(from);
    for (int64_t i = 0; i < kHalf; i += kLanes) {
      const Bytes codes = load<Bytes>(from + 4 + i);
      const Bytes low = (codes & int8_t{15}) - int8_t{8};
      const Bytes high = (Bytes)(((Bytes)(codes >> 4)) & int8_t{15}) - int8_t{8};
      use(i, __builtin_convertvector(__builtin_convertvector(low, Ints), Floats) * scale);
      use(kHalf + i, __builtin_convertvector(__builtin_convertvector(high, Ints), Floats) * scale);
    }
  }
};

/// A bit for each number, set where it is negative, and the mean of the magnitudes.
struct Sign {
  static constexpr int64_t kBucket = 512, kBytes = 4 + kBucket / 8;
  static int64_t bytes(int64_t count) { return 4 + (count + 7) / 8; }

  SYNCOPATE_INLINE void encode(const float* from, uint8_t* into, int64_t count) {
    const float share = 1.0f / static_cast<float>(count);
    Floats sums[2] = {};
    Words most{};
    for (int64_t i = 0; i < kBucket; i += 2 * kLanes) {
      for (int64_t j = 0; j < 2; ++j) {
        const Words size = magnitudes(from + i + j * kLanes);
        most = larger(most, size);
        sums[j] += (Floats)size * share;
        const auto bits = static_cast<uint16_t>(high_bits(load<Words>(from + i + j * kLanes)));
        store(into + 4 + (i + j * kLanes) / 8, bits);
      }
    }
    float scale = sum_of(sums[0] + sums[1]);
    if (scale > __FLT_MAX__) scale = __FLT_MAX__;
    if (largest_of(most) >= kInfinity) scale = __builtin_nanf("");
    store(into, scale);
  }

  template <typename Use>
  SYNCOPATE_INLINE void decode(const uint8_t* from, const Use& use) {
    const Words scale = (Words)splat(load<float>(from));
    for (int64_t i = 0; i < kBucket; i += kLanes) {
      const Words bits = splat(static_cast<uint32_t>(load<uint16_t>(from + 4 + i / 8)));
#if defined(__AVX2__)
      constexpr Words kPlaces = {31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16};
      const Words signs = (bits << kPlaces) & kSign;
#else
      // Old registers cannot shift each lane by its own count.
      constexpr Words kBits = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
      const Words signs = (Words)((bits & kBits) == kBits) & kSign;
#endif
      use(i, (Floats)(scale | signs));
    }
  }
};

}  // namespace syncopate::codec::kernels::SYNCOPATE_ISA
