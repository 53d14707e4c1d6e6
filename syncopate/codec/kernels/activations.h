#pragma once

#include "syncopate/codec/kernels/activation_steps.h"
#include "syncopate/codec/kernels/kernels.h"
#include "syncopate/codec/kernels/lanes.h"

// Activations in 1 to 8 bits with a step for each channel. A matrix is walked through as one long array: a
// place in it and a channel go side by side, sixteen at a time, whatever the number of channels.
namespace syncopate::codec::kernels::SYNCOPATE_ISA {

typedef uint8_t Codes __attribute__((vector_size(kLanes)));
static constexpr int64_t kGroup = ActivationKernels::kGroup, kParts = kGroup / kLanes;
static_assert(Channels::kLonger >= kLanes, "sixteen numbers find their channels from any place");

/// The whole part of numbers after they were brought between 0 and `top`; of what is no number, 0.
SYNCOPATE_INLINE Ints whole_part(Floats x, float top) {
#if defined(__AVX512F__)
  const __m512 low = _mm512_max_ps((__m512)x, _mm512_setzero_ps());
  return (Ints)_mm512_cvttps_epi32(_mm512_min_ps(low, _mm512_set1_ps(top)));
#elif defined(__AVX2__)
  __m256 parts[2];
  __m256i whole[2];
  __builtin_memcpy(parts, &x, sizeof x);
  for (int i = 0; i < 2; ++i) {
    const __m256 low = _mm256_max_ps(parts[i], _mm256_setzero_ps());
    whole[i] = _mm256_cvttps_epi32(_mm256_min_ps(low, _mm256_set1_ps(top)));
  }
  return load<Ints>(whole);
#elif defined(__SSE2__)
  __m128 parts[4];
  __m128i whole[4];
  __builtin_memcpy(parts, &x, sizeof x);
  for (int i = 0; i < 4; ++i) {
    const __m128 low = _mm_max_ps(parts[i], _mm_setzero_ps());
    whole[i] = _mm_cvttps_epi32(_mm_min_ps(low, _mm_set1_ps(top)));
  }
  return load<Ints>(whole);
#else
  Ints whole{};
  for (int i = 0; i < kLanes; ++i) {
    const float low = x[i] > 0 ? x[i] : 0;
    whole[i] = static_cast<int32_t>(low < top ? low : top);
  }
  return whole;
#endif
}

SYNCOPATE_INLINE Floats floats_of(Ints x) {
#if defined(__AVX512F__)
  return (Floats)_mm512_cvtepi32_ps((__m512i)x);
#else
  return __builtin_convertvector(x, Floats);
#endif
}

/// Of numbers from 0 to 255.
SYNCOPATE_INLINE Codes codes_of(Ints x) {
#if defined(__AVX512F__)
  return (Codes)_mm512_cvtepi32_epi8((__m512i)x);
#elif defined(__SSE2__)
  __m128i parts[4];
  __builtin_memcpy(parts, &x, sizeof x);
  return (Codes)_mm_packus_epi16(_mm_packs_epi32(parts[0], parts[1]), _mm_packs_epi32(parts[2], parts[3]));
#else
  return __builtin_convertvector(x, Codes);
#endif
}

SYNCOPATE_INLINE Ints ints_of(Codes x) {
#if defined(__AVX512F__)
  return (Ints)_mm512_cvtepu8_epi32((__m128i)x);
#elif defined(__AVX2__)
  const __m256i parts[2] = {_mm256_cvtepu8_epi32((__m128i)x),
                            _mm256_cvtepu8_epi32(_mm_srli_si128((__m128i)x, 8))};
  return load<Ints>(parts);
#elif defined(__SSE2__)
  const __m128i zero = _mm_setzero_si128();
  const __m128i low = _mm_unpacklo_epi8((__m128i)x, zero), high = _mm_unpackhi_epi8((__m128i)x, zero);
  const __m128i parts[4] = {_mm_unpacklo_epi16(low, zero), _mm_unpackhi_epi16(low, zero),
                            _mm_unpacklo_epi16(high, zero), _mm_unpackhi_epi16(high, zero)};
  return load<Ints>(parts);
#else
  return __builtin_convertvector(x, Ints);
#endif
}

/// Eight codes of kBits, one of each part, become kBits bytes: byte by byte from the lowest bit on.
template <int kBits>
SYNCOPATE_INLINE void join(const Codes* parts, Codes* bytes) {
#pragma GCC unroll 8
  for (int i = 0; i < kBits; ++i) bytes[i] = Codes{};
#pragma GCC unroll 8
  for (int i = 0; i < kParts; ++i) {
    const int byte = i * kBits / 8, bit = i * kBits % 8;
    bytes[byte] |= parts[i] << bit;
    if (bit + kBits > 8) bytes[byte + 1] |= parts[i] >> (8 - bit);
  }
}

template <int kBits>
SYNCOPATE_INLINE void split(const Codes* bytes, Codes* parts) {
  constexpr auto kMask = static_cast<uint8_t>((1 << kBits) - 1);
#pragma GCC unroll 8
  for (int i = 0; i < kParts; ++i) {
    const int byte = i * kBits / 8, bit = i * kBits % 8;
    parts[i] = bytes[byte] >> bit;
    if (bit + kBits > 8) parts[i] |= bytes[byte + 1] << (8 - bit);
    parts[i] &= kMask;
  }
}

/// The channel sixteen numbers further on.
struct ChannelWalk {
  int64_t count, stride, at = 0;
  [[gnu::always_inline]] explicit ChannelWalk(int64_t channels)
      : count(channels), stride(channels > kLanes ? kLanes : kLanes % channels) {}
  [[gnu::always_inline]] void next() {
    at += stride;
    at -= at >= count ? count : 0;
  }
};

/// Sixteen draws from [0, 1) for the numbers from `first` on, of 16 bits: what stands on a level stays there.
SYNCOPATE_INLINE Floats draws(uint64_t key, int64_t first) {
  constexpr Words kPlaces = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Words hash = (kPlaces + static_cast<uint32_t>(first)) * 0x9e3779b1u + static_cast<uint32_t>(key);
  hash = (hash ^ (hash >> 15)) * 0x85ebca77u;
  hash = (hash ^ (hash >> 13) ^ static_cast<uint32_t>(key >> 32)) * 0xc2b2ae3du;
  return floats_of((Ints)((hash ^ (hash >> 16)) >> 16)) * 0x1p-16f;
}

struct ErrorLanes {
  Floats error{}, meant{}, change{};
  [[gnu::always_inline]] void add(Floats value, Floats received) {
    const Floats rest = value - received;
    error += rest * rest;
    meant += value * value;
  }
  [[gnu::always_inline]] void move_to(SquaredError& sums) {
    sums.error += static_cast<double>(sum_of(error));
    sums.meant += static_cast<double>(sum_of(meant));
    sums.change += static_cast<double>(sum_of(change));
    *this = {};
  }
};

SYNCOPATE_INLINE void add_one(SquaredError& sums, float value, float received, float known) {
  const double meant = static_cast<double>(value), rest = meant - static_cast<double>(received),
               moved = meant - static_cast<double>(known);
  sums.error += rest * rest;
  sums.meant += meant * meant;
  sums.change += moved * moved;
}

static constexpr int64_t kGroupsOfASum = 32;  // lanes of fp32 keep their digits

template <int kBits, bool kChange, bool kDrawn>
SYNCOPATE_INLINE void encode_group(const float* values, const float* memory, const Channels& channels,
                                   ChannelWalk& walk, uint64_t key, int64_t first, Codes* bytes,
                                   float* update, ErrorLanes& errors) {
  constexpr float kTop = (1 << kBits) - 0.5f;
  Codes parts[kParts];
#pragma GCC unroll 8
  for (int64_t i = 0; i < kParts; ++i, walk.next()) {
    const int64_t c = walk.at;
    const Floats value = load<Floats>(values + i * kLanes);
    Floats known{};
    if constexpr (kChange) known = load<Floats>(memory + i * kLanes);
    const Floats moved = value - known;
    Floats place = moved * load<Floats>(channels.up + c) + load<Floats>(channels.bias + c);
    if constexpr (kDrawn) place += draws(key, first + i * kLanes);
    const Ints code = whole_part(place, kTop);
    const Floats change =
        (floats_of(code) - load<Floats>(channels.center + c)) * load<Floats>(channels.step + c);
    Floats received = change;
    if constexpr (kChange) {
      received = known + change;
      errors.change += moved * moved;
    }
    errors.add(value, received);
    if (update != nullptr) store(update + i * kLanes, received);
    parts[i] = codes_of(code);
  }
  join<kBits>(parts, bytes);
}

/// Bytes of a last group of `count` numbers: those that hold them.
template <int kBits>
SYNCOPATE_INLINE int64_t tail_bytes(int64_t count) {
  return kLanes * (((count + kLanes - 1) / kLanes * kBits + 7) / 8);
}

template <int kBits, bool kChange, bool kDrawn>
static SquaredError encode_activations(const float* values, const float* memory, int64_t count,
                                       const Channels& channels, uint64_t key, uint8_t* into, float* update) {
  SquaredError sums;
  ErrorLanes errors;
  ChannelWalk walk(channels.count);
  Codes bytes[kBits];
  int64_t at = 0;
  while (at + kGroup <= count) {
    for (int64_t i = 0; i < kGroupsOfASum && at + kGroup <= count; ++i, at += kGroup, into += sizeof bytes) {
      encode_group<kBits, kChange, kDrawn>(values + at, kChange ? memory + at : nullptr, channels, walk, key,
                                           at, bytes, update == nullptr ? nullptr : update + at, errors);
      __builtin_memcpy(into, bytes, sizeof bytes);
    }
    errors.move_to(sums);
  }
  if (at == count) return sums;
  // Filled up with what is of no size: its codes are not sent, and its errors not counted.
  const int64_t rest = count - at;
  const auto size = static_cast<size_t>(rest) * sizeof(float);
  float some[kGroup] = {}, known[kGroup] = {}, received[kGroup];
  __builtin_memcpy(some, values + at, size);
  if (kChange) __builtin_memcpy(known, memory + at, size);
  encode_group<kBits, kChange, kDrawn>(some, known, channels, walk, key, at, bytes, received, errors);
  __builtin_memcpy(into, bytes, static_cast<size_t>(tail_bytes<kBits>(rest)));
  if (update != nullptr) __builtin_memcpy(update + at, received, size);
  for (int64_t i = 0; i < rest; ++i) add_one(sums, some[i], received[i], kChange ? known[i] : some[i]);
  return sums;
}

template <int kBits>
static SquaredError encode_activations_any(const float* values, const float* memory, int64_t count,
                                           const Channels& channels, const uint64_t* draw, uint8_t* into,
                                           float* update) {
  if (draw != nullptr) {
    return memory != nullptr
               ? encode_activations<kBits, true, true>(values, memory, count, channels, *draw, into, update)
               : encode_activations<kBits, false, true>(values, memory, count, channels, *draw, into, update);
  }
  return memory != nullptr
             ? encode_activations<kBits, true, false>(values, memory, count, channels, 0, into, update)
             : encode_activations<kBits, false, false>(values, memory, count, channels, 0, into, update);
}

template <int kBits, bool kChange>
SYNCOPATE_INLINE void decode_group(const Codes* bytes, const float* memory, const Channels& channels,
                                   ChannelWalk& walk, float* into, float* update) {
  Codes parts[kParts];
  split<kBits>(bytes, parts);
#pragma GCC unroll 8
  for (int64_t i = 0; i < kParts; ++i, walk.next()) {
    const int64_t c = walk.at;
    const Floats code = floats_of(ints_of(parts[i]));
    Floats received = (code - load<Floats>(channels.center + c)) * load<Floats>(channels.step + c);
    if constexpr (kChange) received = load<Floats>(memory + i * kLanes) + received;
    store(into + i * kLanes, received);
    if (update != nullptr) store(update + i * kLanes, received);
  }
}

template <int kBits, bool kChange>
static void decode_activations(const uint8_t* from, const float* memory, int64_t count,
                               const Channels& channels, float* into, float* update) {
  ChannelWalk walk(channels.count);
  Codes bytes[kBits] = {};
  int64_t at = 0;
  for (; at + kGroup <= count; at += kGroup, from += sizeof bytes) {
    __builtin_memcpy(bytes, from, sizeof bytes);
    decode_group<kBits, kChange>(bytes, kChange ? memory + at : nullptr, channels, walk, into + at,
                                 update == nullptr ? nullptr : update + at);
  }
  if (at == count) return;
  const auto size = static_cast<size_t>(count - at) * sizeof(float);
  float known[kGroup] = {}, received[kGroup];
  if (kChange) __builtin_memcpy(known, memory + at, size);
  __builtin_memcpy(bytes, from, static_cast<size_t>(tail_bytes<kBits>(count - at)));
  decode_group<kBits, kChange>(bytes, known, channels, walk, received, nullptr);
  __builtin_memcpy(into + at, received, size);
  if (update != nullptr) __builtin_memcpy(update + at, received, size);
}

template <int kBits>
static void decode_activations_any(const uint8_t* from, const float* memory, int64_t count,
                                   const Channels& channels, float* into, float* update) {
  if (memory != nullptr) {
    decode_activations<kBits, true>(from, memory, count, channels, into, update);
  } else {
    decode_activations<kBits, false>(from, memory, count, channels, into, update);
  }
}

// Plain loops over channels: every instruction set has its own way to go through them, and each channel's
// sum has the order of the rows.

SYNCOPATE_INLINE float magnitude(float x) { return __builtin_fabsf(x); }

template <bool kChange>
SYNCOPATE_INLINE void largest_of_rows(const float* __restrict values, const float* __restrict memory,
                                      int64_t rows, int64_t channels, uint32_t* __restrict into) {
  for (int64_t r = 0; r < rows; ++r, values += channels, memory += kChange ? channels : 0) {
    for (int64_t c = 0; c < channels; ++c) {
      const float x = kChange ? values[c] - memory[c] : values[c];
      const auto size = static_cast<int32_t>(load<uint32_t>(&x) & kMagnitude),
                 most = static_cast<int32_t>(into[c]);
      into[c] = static_cast<uint32_t>(size > most ? size : most);
    }
  }
}

static void largest_of_channels(const float* values, const float* memory, int64_t rows, int64_t channels,
                                uint32_t* into) {
  if (memory != nullptr) {
    largest_of_rows<true>(values, memory, rows, channels, into);
  } else {
    largest_of_rows<false>(values, memory, rows, channels, into);
  }
}

template <bool kChange>
SYNCOPATE_INLINE void moments_of_rows(const float* __restrict values, const float* __restrict memory,
                                      int64_t rows, int64_t channels, uint32_t* __restrict largest,
                                      float* __restrict sums, float* __restrict squares) {
  for (int64_t r = 0; r < rows; ++r, values += channels, memory += kChange ? channels : 0) {
    for (int64_t c = 0; c < channels; ++c) {
      const float x = kChange ? values[c] - memory[c] : values[c];
      const auto size = static_cast<int32_t>(load<uint32_t>(&x) & kMagnitude),
                 most = static_cast<int32_t>(largest[c]);
      largest[c] = static_cast<uint32_t>(size > most ? size : most);
      sums[c] += magnitude(x);
      squares[c] += x * x;
    }
  }
}

static void moments_of_channels(const float* values, const float* memory, int64_t rows, int64_t channels,
                                Moments into) {
  if (memory != nullptr) {
    moments_of_rows<true>(values, memory, rows, channels, into.largest, into.sums, into.squares);
  } else {
    moments_of_rows<false>(values, memory, rows, channels, into.largest, into.sums, into.squares);
  }
}

template <bool kChange>
SYNCOPATE_INLINE void beyond_of_rows(const float* __restrict values, const float* __restrict memory,
                                     int64_t rows, int64_t channels, const float* __restrict limits,
                                     float* __restrict counts, float* __restrict sums,
                                     float* __restrict squares) {
  for (int64_t r = 0; r < rows; ++r, values += channels, memory += kChange ? channels : 0) {
    for (int64_t c = 0; c < channels; ++c) {
      const float size = magnitude(kChange ? values[c] - memory[c] : values[c]);
      const float outer = size > limits[c] ? size : 0.0f;
      counts[c] += size > limits[c] ? 1.0f : 0.0f;
      sums[c] += outer;
      squares[c] += outer * outer;
    }
  }
}

static void beyond_limits(const float* values, const float* memory, int64_t rows, int64_t channels,
                          const float* limits, Beyond into) {
  if (memory != nullptr) {
    beyond_of_rows<true>(values, memory, rows, channels, limits, into.counts, into.sums, into.squares);
  } else {
    beyond_of_rows<false>(values, memory, rows, channels, limits, into.counts, into.sums, into.squares);
  }
}

static SquaredError compare(const float* meant, const float* received, int64_t count) {
  SquaredError sums;
  ErrorLanes errors;
  int64_t at = 0;
  while (at + kLanes <= count) {
    const int64_t end = at + kGroupsOfASum * kGroup;
    for (; at + kLanes <= count && at < end; at += kLanes) {
      errors.add(load<Floats>(meant + at), load<Floats>(received + at));
    }
    errors.move_to(sums);
  }
  for (; at < count; ++at) add_one(sums, meant[at], received[at], meant[at]);
  return sums;
}

SYNCOPATE_INLINE constexpr ActivationKernels activation_kernels() {
  return {largest_of_channels,
          moments_of_channels,
          limits_of_channels,
          beyond_limits,
          choose_steps,
          {encode_activations_any<1>, encode_activations_any<2>, encode_activations_any<3>,
           encode_activations_any<4>, encode_activations_any<5>, encode_activations_any<6>,
           encode_activations_any<7>, encode_activations_any<8>},
          {decode_activations_any<1>, decode_activations_any<2>, decode_activations_any<3>,
           decode_activations_any<4>, decode_activations_any<5>, decode_activations_any<6>,
           decode_activations_any<7>, decode_activations_any<8>},
          compare};
}

}  // namespace syncopate::codec::kernels::SYNCOPATE_ISA
