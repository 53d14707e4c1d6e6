// Compiled once for each instruction set, with SYNCOPATE_ISA naming it; see cmake/kernels.cmake.
#include "syncopate/codec/kernels/kernels.h"

#include "syncopate/codec/kernels/activations.h"
#include "syncopate/codec/kernels/halves.h"
#include "syncopate/codec/kernels/scaled.h"

#define SYNCOPATE_TEXT_OF(x) #x
#define SYNCOPATE_TEXT(x) SYNCOPATE_TEXT_OF(x)

namespace syncopate::codec::kernels::SYNCOPATE_ISA {

/// Encodes bucket by bucket; the last one is filled up with zeros, of which nothing is kept.
template <typename F>
static void encode(const float* from, uint8_t* into, int64_t count) {
  for (; count >= F::kBucket; count -= F::kBucket, from += F::kBucket, into += F::kBytes) {
    F::encode(from, into, F::kBucket);
  }
  if (count == 0) return;
  float padded[F::kBucket] = {};
  uint8_t packed[F::kBytes];
  __builtin_memcpy(padded, from, static_cast<size_t>(count) * sizeof(float));
  F::encode(padded, packed, count);
  __builtin_memcpy(into, packed, static_cast<size_t>(F::bytes(count)));
}

/// Calls use(position, numbers) for sixteen at a time and use(position, number) for those of the last bucket.
template <typename F, typename Use>
SYNCOPATE_INLINE void decode_each(const uint8_t* from, int64_t count, const Use& use) {
  int64_t at = 0;
  for (; at + F::kBucket <= count; at += F::kBucket, from += F::kBytes) {
    F::decode(from, [&](int64_t i, Floats numbers) { use(at + i, numbers); });
  }
  if (at == count) return;
  uint8_t packed[F::kBytes] = {};
  float numbers[F::kBucket];
  __builtin_memcpy(packed, from, static_cast<size_t>(F::bytes(count - at)));
  F::decode(packed, [&](int64_t i, Floats some) { store(numbers + i, some); });
  for (int64_t i = 0; at + i < count; ++i) use(at + i, numbers[i]);
}

struct Set {
  float* into;
  [[gnu::always_inline]] void operator()(int64_t at, Floats numbers) const { store(into + at, numbers); }
  [[gnu::always_inline]] void operator()(int64_t at, float number) const { into[at] = number; }
};

struct Add {
  float* into;
  [[gnu::always_inline]] void operator()(int64_t at, Floats numbers) const {
    store(into + at, load<Floats>(into + at) + numbers);
  }
  [[gnu::always_inline]] void operator()(int64_t at, float number) const { into[at] += number; }
};

struct Rest {
  const float* whole;
  float* into;
  [[gnu::always_inline]] void operator()(int64_t at, Floats numbers) const {
    store(into + at, load<Floats>(whole + at) - numbers);
  }
  [[gnu::always_inline]] void operator()(int64_t at, float number) const { into[at] = whole[at] - number; }
};

template <typename F>
static void decode(const uint8_t* from, float* into, int64_t count) {
  decode_each<F>(from, count, Set{into});
}

template <typename F>
static void decode_add(const uint8_t* from, float* into, int64_t count) {
  decode_each<F>(from, count, Add{into});
}

template <typename F>
static void rest(const uint8_t* from, const float* whole, float* into, int64_t count) {
  decode_each<F>(from, count, Rest{whole, into});
}

template <typename F>
static constexpr Format format() {
  return {F::kBucket, F::kBytes, F::bytes, encode<F>, decode<F>, decode_add<F>, rest<F>};
}

static bool finite(const float* data, int64_t count) {
  const int64_t whole = count / kLanes * kLanes;
  uint32_t most = largest_magnitude(data, whole);
  for (int64_t i = whole; i < count; ++i) {
    const uint32_t size = load<uint32_t>(data + i) & kMagnitude;
    most = size > most ? size : most;
  }
  return most < kInfinity;
}

static void add(const float* from, float* into, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(into + i, load<Floats>(into + i) + load<Floats>(from + i));
  for (; i < count; ++i) into[i] += from[i];
}

static int64_t positions_from(const float* data, int64_t count, uint32_t least, uint32_t* into) {
  int64_t found = 0, i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    // Magnitudes have no sign bit: below `least` the difference is negative.
    uint32_t bits = ~high_bits(magnitudes(data + i) - least) & 0xffffu;
#if defined(__AVX512F__)
    if (bits == 0) continue;
    constexpr Words kPlaces = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const __m512i places = (__m512i)(kPlaces + static_cast<uint32_t>(i));
    _mm512_storeu_si512(into + found, _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), places));
    found += __builtin_popcount(bits);
#else
    for (; bits != 0; bits &= bits - 1) into[found++] = static_cast<uint32_t>(i + __builtin_ctz(bits));
#endif
  }
  for (; i < count; ++i) {
    if ((load<uint32_t>(data + i) & kMagnitude) >= least) into[found++] = static_cast<uint32_t>(i);
  }
  return found;
}

const Kernels table = {
    SYNCOPATE_TEXT(SYNCOPATE_ISA),
    format<Fp32>(),
    format<Fp16>(),
    format<Bf16>(),
    format<Int8>(),
    format<Int4>(),
    format<Sign>(),
    finite,
    add,
    positions_from,
    activation_kernels(),
};

}  // namespace syncopate::codec::kernels::SYNCOPATE_ISA
