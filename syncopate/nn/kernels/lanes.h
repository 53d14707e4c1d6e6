#pragma once

#include <cstdint>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#include "syncopate/base/noise_hash.h"
#include "syncopate/nn/kernels/kernels.h"

// A vector register as a value, for the instruction set this file is compiled for. Everything is in a
// namespace of that instruction set and always inlined: nothing here may reach another set's code through the
// linker. For the same reason kernels use no function of the standard library.
#ifndef SYNCOPATE_ISA
#define SYNCOPATE_ISA baseline
#endif
#define SYNCOPATE_INLINE [[gnu::always_inline]] static inline

namespace syncopate::nn::kernels::SYNCOPATE_ISA {

using namespace noise_hash;

#if defined(__AVX512F__)
static constexpr int64_t kLanes = 16;
#elif defined(__AVX2__)
static constexpr int64_t kLanes = 8;
#else
static constexpr int64_t kLanes = 4;
#endif

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));

SYNCOPATE_INLINE Floats splat(float x) { return Floats{} + x; }

/// All lanes of a register.
struct Whole {
  [[gnu::always_inline]] Floats load(const float* from) const {
    Floats x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
  }
  [[gnu::always_inline]] void store(float* to, Floats x) const { __builtin_memcpy(to, &x, sizeof x); }
  [[gnu::always_inline]] Floats only(Floats x) const { return x; }
};

/// The first `count` lanes, at the end of a row; others load as zero.
struct Part {
  int64_t count;

#if defined(__AVX512F__)
  [[gnu::always_inline]] Floats load(const float* from) const {
    return (Floats)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from);
  }
  [[gnu::always_inline]] void store(float* to, Floats x) const {
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), (__m512)x);
  }
#elif defined(__AVX2__)
  [[gnu::always_inline]] Ints mask() const {
    return Ints{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<int32_t>(count);
  }
  [[gnu::always_inline]] Floats load(const float* from) const {
    return (Floats)_mm256_maskload_ps(from, (__m256i)mask());
  }
  [[gnu::always_inline]] void store(float* to, Floats x) const {
    _mm256_maskstore_ps(to, (__m256i)mask(), (__m256)x);
  }
#else
  [[gnu::always_inline]] Floats load(const float* from) const {
    Floats x{};
    for (int64_t i = 0; i < count; ++i) x[i] = from[i];
    return x;
  }
  [[gnu::always_inline]] void store(float* to, Floats x) const {
    for (int64_t i = 0; i < count; ++i) to[i] = x[i];
  }
#endif
  /// Zero in the lanes beyond the row, for sums.
  [[gnu::always_inline]] Floats only(Floats x) const {
    Floats kept{};
    for (int64_t i = 0; i < kLanes; ++i) kept[i] = i < count ? x[i] : 0.0f;
    return kept;
  }
};

/// Calls do_lanes(column, lanes) along a row of `width`.
template <typename Body>
SYNCOPATE_INLINE void along(int64_t width, const Body& do_lanes) {
  int64_t column = 0;
  for (; column + kLanes <= width; column += kLanes) do_lanes(column, Whole{});
  if (column < width) do_lanes(column, Part{width - column});
}

SYNCOPATE_INLINE float sum_of(Floats x) {
  // Halves added to halves: a fixed order for each width of register.
  float parts[kLanes];
  __builtin_memcpy(parts, &x, sizeof x);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  }
  return parts[0];
}

SYNCOPATE_INLINE float largest_of(Floats x) {
  float most = x[0];
  for (int64_t i = 1; i < kLanes; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

SYNCOPATE_INLINE Floats larger(Floats a, Floats b) { return a > b ? a : b; }
SYNCOPATE_INLINE Floats smaller(Floats a, Floats b) { return a < b ? a : b; }

/// e^x to 2 units in the last place; 0 below the smallest normal number.
SYNCOPATE_INLINE Floats exp_of(Floats x) {
  const Floats low = splat(-87.3f);
  const Floats within = smaller(larger(x, low), splat(88.3f));
  // x = n ln 2 + r; adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits.
  const Floats shifted = within * 0x1.715476p+0f + 0x1.8p23f;
  const Floats n = shifted - 0x1.8p23f;
  const Floats r = (within - n * 0x1.62e400p-1f) - n * 0x1.7f7d1cp-20f;
  // Minimax fit of (e^r - 1 - r) / r^2 on |r| <= ln(2) / 2.
  Floats p = splat(0x1.6a243ap-10f);
  p = p * r + 0x1.1239d6p-7f;
  p = p * r + 0x1.5558f2p-5f;
  p = p * r + 0x1.555492p-3f;
  p = p * r + 0x1.fffffcp-2f;
  p = p * (r * r) + r + 1.0f;
  const Ints power = ((Ints)shifted - (Ints)splat(0x1.8p23f)) << 23;
  return x < low ? Floats{} : (Floats)((Ints)p + power);
}

/// The normal distribution at x: its sum up to x, to 2e-7, and sqrt(2 pi) times its density.
struct Normal {
  Floats sum, bell;
};

SYNCOPATE_INLINE Normal normal_of(Floats x) {
  // With u = |x| / sqrt(2) and t = 1 / (1 + 3/8 u): erfc(u) = e^(-u^2) t P(t), P a minimax fit for u up to 9.
  const Floats u = (x < 0.0f ? -x : x) * 0x1.6a09e6p-1f;
  const Floats t = 1.0f / (u * 0.375f + 1.0f);
  Floats p = splat(0x1.f96d04p-5f);
  p = p * t - 0x1.26fe60p-2f;
  p = p * t + 0x1.bc5112p-2f;
  p = p * t - 0x1.d94448p-3f;
  p = p * t + 0x1.1972c2p-2f;
  p = p * t + 0x1.efc300p-4f;
  p = p * t + 0x1.a4b92cp-3f;
  p = p * t + 0x1.af608cp-3f;
  p = p * t + 0x1.b162e8p-3f;
  const Floats bell = exp_of(-(u * u));
  const Floats tail = p * t * 0.5f * bell;
  return {x > 0.0f ? 1.0f - tail : tail, bell};
}

/// tanh(x) and its slope, which 1 - tanh(x)^2 would lose to rounding.
struct Tanh {
  Floats value, slope;
};

SYNCOPATE_INLINE Tanh tanh_of(Floats x) {
  const Floats e = exp_of(smaller(larger(x, splat(-20.0f)), splat(20.0f)) * 2.0f);
  const Floats inverse = 1.0f / (e + 1.0f);
  return {(e - 1.0f) * inverse, 4.0f * e * inverse * inverse};
}

/// What the elements of one row are multiplied by: 0 or the scale. See noise_hash.h.
class RowNoise {
 public:
  RowNoise(const NoiseJob& job, int64_t row, int64_t head = 0)
      : drop_below_(job.drop_below), scale_(job.scale) {
    const uint64_t number = job.rows == nullptr ? static_cast<uint64_t>(row) : job.rows[row];
    const uint64_t seed = row_seed(job.key, number, static_cast<uint64_t>(head));
    low_ = static_cast<uint32_t>(seed);
    high_ = static_cast<uint32_t>(seed >> 32);
  }

  [[gnu::always_inline]] Floats factors(int64_t column) const {
    Words x = (numbers() + static_cast<uint32_t>(column)) * kColumnStep ^ low_;
    x = (x ^ (x >> kShift1)) * kFactor1 ^ high_;
    x = (x ^ (x >> kShift2)) * kFactor2;
    x = x ^ (x >> kShift3);
    return x < drop_below_ ? Floats{} : splat(scale_);
  }

 private:
  [[gnu::always_inline]] static Words numbers() {
    Words n{};
    for (int64_t i = 0; i < kLanes; ++i) n[i] = static_cast<uint32_t>(i);
    return n;
  }

  uint32_t low_ = 0, high_ = 0, drop_below_;
  float scale_;
};

}  // namespace syncopate::nn::kernels::SYNCOPATE_ISA
