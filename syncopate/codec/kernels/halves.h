#pragma once

#include "syncopate/codec/kernels/lanes.h"

// Numbers of 16 bits (and of 32, which is no packing at all): rounded to nearest, ties to even. A finite
// number stays finite: beyond the largest it becomes the largest.
namespace syncopate::codec::kernels::SYNCOPATE_ISA {

struct Fp32 {
  static constexpr int64_t kBucket = kLanes, kBytes = 4 * kLanes;
  static int64_t bytes(int64_t count) { return 4 * count; }
  SYNCOPATE_INLINE void encode(const float* from, uint8_t* into, int64_t) { store(into, load<Floats>(from)); }
  template <typename Use>
  SYNCOPATE_INLINE void decode(const uint8_t* from, const Use& use) {
    use(0, load<Floats>(from));
  }
};

struct Fp16 {
  static constexpr int64_t kBucket = kLanes, kBytes = 2 * kLanes;
  static int64_t bytes(int64_t count) { return 2 * count; }

  SYNCOPATE_INLINE void encode(const float* from, uint8_t* into, int64_t) {
    const Words bits = load<Words>(from), sign = bits & kSign;
    Words size = bits & kMagnitude;
    constexpr uint32_t kLargest = 0x477fe000;  // 65504
    size = pick(below(splat(kLargest), size) & below(size, splat(kInfinity)), splat(kLargest), size);
#if defined(__AVX512F__)
    store(into, (Halves)_mm512_cvtps_ph((__m512)(size | sign), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    const Words clamped = size | sign;
    __m256 parts[2];
    __builtin_memcpy(parts, &clamped, sizeof clamped);
    store(into, _mm256_cvtps_ph(parts[0], _MM_FROUND_TO_NEAREST_INT));
    store(into + 16, _mm256_cvtps_ph(parts[1], _MM_FROUND_TO_NEAREST_INT));
#else
    // Below the smallest normal number the sum with 1/2 has the half's digits as its last ones, rounded.
    const Words tiny = (Words)((Floats)size + 0.5f) - 0x3f000000u;
    const Words normal = (size - (112u << 23) + 0xfffu + ((size >> 13) & 1u)) >> 13;
    const Words quiet = below(splat(kInfinity), size) & (((size >> 13) & 0x3ffu) | 0x200u);
    const Words half = pick(below(size, splat(0x38800000u)), tiny, normal);
    store(into, narrow(pick(below(size, splat(kInfinity)), half, quiet | 0x7c00u) | (sign >> 16)));
#endif
  }

  template <typename Use>
  SYNCOPATE_INLINE void decode(const uint8_t* from, const Use& use) {
#if defined(__AVX512F__)
    use(0, (Floats)_mm512_cvtph_ps(load<__m256i>(from)));
#elif defined(__F16C__)
    const __m256 parts[2] = {_mm256_cvtph_ps(load<__m128i>(from)), _mm256_cvtph_ps(load<__m128i>(from + 16))};
    use(0, load<Floats>(parts));
#else
    const Words half = __builtin_convertvector(load<Halves>(from), Words);
    const Words sign = (half & 0x8000u) << 16, size = (half & 0x7fffu) << 13;
    const Words scaled = (Words)((Floats)size * 0x1p112f);
    use(0, (Floats)(pick(below(size, splat(0x0f800000u)), scaled, size | kInfinity) | sign));
#endif
  }
};

struct Bf16 {
  static constexpr int64_t kBucket = kLanes, kBytes = 2 * kLanes;
  static int64_t bytes(int64_t count) { return 2 * count; }

  SYNCOPATE_INLINE void encode(const float* from, uint8_t* into, int64_t) {
    const Words bits = load<Words>(from), size = bits & kMagnitude;
    // Nothing is added to those that would round up to infinity, nor to those that are not finite.
    const Words up = below(size, splat(0x7f7f8000u)) & (((size >> 16) & 1u) + 0x7fffu);
    store(into, narrow((bits + up) >> 16));
  }

  template <typename Use>
  SYNCOPATE_INLINE void decode(const uint8_t* from, const Use& use) {
    use(0, (Floats)(__builtin_convertvector(load<Halves>(from), Words) << 16));
  }
};

}  // namespace syncopate::codec::kernels::SYNCOPATE_ISA
