#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

// Sixteen numbers as one value, whatever the width of a register: the compiler cuts it to measure. Everything
// is in a namespace of the instruction set and always inlined: nothing here may reach another set's code
// through the linker. For the same reason kernels use no function of the standard library.
#ifndef SYNCOPATE_ISA
#define SYNCOPATE_ISA baseline
#endif
#define SYNCOPATE_INLINE [[gnu::always_inline]] static inline

namespace syncopate::codec::kernels::SYNCOPATE_ISA {

static constexpr int64_t kLanes = 16;
typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef uint16_t Halves __attribute__((vector_size(2 * kLanes)));
typedef int8_t Bytes __attribute__((vector_size(kLanes)));

static constexpr uint32_t kSign = 0x80000000u, kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u;

template <typename Value>
SYNCOPATE_INLINE Value load(const void* from) {
  Value value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <typename Value>
SYNCOPATE_INLINE void store(void* into, Value value) {
  __builtin_memcpy(into, &value, sizeof value);
}

SYNCOPATE_INLINE Floats splat(float x) { return Floats{} + x; }
SYNCOPATE_INLINE Words splat(uint32_t x) { return Words{} + x; }

// Compilers cut sums and shifts of wide vectors to registers, but comparisons to single lanes; magnitudes
// have no sign bit, so that a difference tells which one is smaller.

/// All bits where a < b; both below 2^31.
SYNCOPATE_INLINE Words below(Words a, Words b) { return (Words)((Ints)(a - b) >> 31); }
SYNCOPATE_INLINE Words pick(Words mask, Words a, Words b) { return (a & mask) | (b & ~mask); }
SYNCOPATE_INLINE Words larger(Words a, Words b) { return pick(below(a, b), b, a); }

SYNCOPATE_INLINE uint32_t largest_of(Words x) {
  uint32_t parts[kLanes], most = 0;
  __builtin_memcpy(parts, &x, sizeof x);
  for (int64_t i = 0; i < kLanes; ++i) most = parts[i] > most ? parts[i] : most;
  return most;
}

/// Halves added to halves.
SYNCOPATE_INLINE float sum_of(Floats x) {
  float parts[kLanes];
  __builtin_memcpy(parts, &x, sizeof x);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  }
  return parts[0];
}

SYNCOPATE_INLINE Words magnitudes(const float* from) { return load<Words>(from) & kMagnitude; }

/// The largest magnitude of whole lanes, as a number of bits: those that are not finite are above all others.
SYNCOPATE_INLINE uint32_t largest_magnitude(const float* from, int64_t count) {
  int32_t most = 0;  // a plain loop: every instruction set has its own way to find the larger of two
  for (int64_t i = 0; i < count; ++i) {
    const auto size = static_cast<int32_t>(load<uint32_t>(from + i) & kMagnitude);
    most = size > most ? size : most;
  }
  return static_cast<uint32_t>(most);
}

/// Bit i is the highest bit of lane i.
SYNCOPATE_INLINE uint32_t high_bits(Words x) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  return _mm512_movepi32_mask((__m512i)x);
#elif defined(__SSE2__)
  uint32_t bits = 0;
  __m128 parts[4];
  __builtin_memcpy(parts, &x, sizeof x);
  for (int i = 0; i < 4; ++i) bits |= static_cast<uint32_t>(_mm_movemask_ps(parts[i])) << (4 * i);
  return bits;
#else
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= (x[i] >> 31) << i;
  return bits;
#endif
}

SYNCOPATE_INLINE Bytes narrow(Ints x) {
#if defined(__AVX512F__)
  return (Bytes)_mm512_cvtepi32_epi8((__m512i)x);
#elif defined(__SSE2__)
  __m128i parts[4];
  __builtin_memcpy(parts, &x, sizeof x);
  return (Bytes)_mm_packs_epi16(_mm_packs_epi32(parts[0], parts[1]), _mm_packs_epi32(parts[2], parts[3]));
#else
  return __builtin_convertvector(x, Bytes);
#endif
}

/// Of numbers below 2^16.
SYNCOPATE_INLINE Halves narrow(Words x) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  __m256i parts[2];
  __builtin_memcpy(parts, &x, sizeof x);
  return (Halves)_mm256_permute4x64_epi64(_mm256_packus_epi32(parts[0], parts[1]), 0b11011000);
#elif defined(__SSE2__) && !defined(__AVX512F__)
  const Ints spread = (Ints)(x << 16) >> 16;  // the pack is a signed one
  __m128i parts[4];
  __builtin_memcpy(parts, &spread, sizeof spread);
  const __m128i packed[2] = {_mm_packs_epi32(parts[0], parts[1]), _mm_packs_epi32(parts[2], parts[3])};
  return load<Halves>(packed);
#else
  return __builtin_convertvector(x, Halves);
#endif
}

}  // namespace syncopate::codec::kernels::SYNCOPATE_ISA
