#pragma once

#include "syncopate/nn/kernels/lanes.h"

// Tiles of bf16: how they are filled from fp32 and multiplied, by AMX, by AVX-512's dot products of bf16, or
// by plain code that rounds alike. A tile holds 16 rows of a (or columns of b) and 32 of their elements, as
// 16 by 16 pairs of neighbours in depth: by rows for a, by pairs for b, as the instructions want it.
namespace syncopate::nn::kernels::SYNCOPATE_ISA {

static constexpr int64_t kTile = 16, kTileDepth = 32, kTileSize = kTile * kTileDepth;

#if defined(__AVX512BF16__)
static constexpr bool kHasHalf = true;
#else
static constexpr bool kHasHalf = false;
#endif

/// Where the sums of a block begin and go. add_block(a, b, deep, sums) makes sums.to = sums.start + a b of
/// two by two tiles, over `deep` pairs of tiles of a and of b, one after the other.
struct Sums {
  const float* start;  ///< null: zeros
  int64_t start_row;
  float* to;
  int64_t to_row;
  const float* next;  ///< where the next block goes: fetched meanwhile; null: nowhere
};

#if defined(__AVX512BF16__)

SYNCOPATE_INLINE __mmask16 lanes_below(int64_t count) {
  return count >= kTile ? static_cast<__mmask16>(0xffff)
                        : static_cast<__mmask16>(count <= 0 ? 0 : (1u << count) - 1);
}

SYNCOPATE_INLINE __m512i rounded(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }

/// Transposes 16 by 16 pairs.
SYNCOPATE_INLINE void turn(__m512i rows[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    rows[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    rows[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    rows[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    rows[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i low = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0x88);
    const __m512i high = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0xdd);
    const __m512i low_2 = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0x88);
    const __m512i high_2 = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0xdd);
    t[i] = _mm512_shuffle_i32x4(low, low_2, 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(high, high_2, 0x88);
    t[8 + i] = _mm512_shuffle_i32x4(low, low_2, 0xdd);
    t[12 + i] = _mm512_shuffle_i32x4(high, high_2, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) rows[i] = t[i];
}

/// The tile that begins at (first, at); zeros beyond the side's ends.
template <bool kPairsFirst>
SYNCOPATE_INLINE void pack_tile(const HalfSide& side, int64_t first, int64_t at, uint16_t* to) {
  __m512i lines[16];
  const int64_t left = side.count - first, deep = side.depth - at;
  if (side.depth_step == 1) {
    const __mmask16 low = lanes_below(deep), high = lanes_below(deep - kTile);
    const float* from = side.data + first * side.step + at;
#pragma GCC unroll 16
    for (int64_t i = 0; i < kTile; ++i) {
      lines[i] = i < left
                     ? rounded(_mm512_maskz_loadu_ps(low, from), _mm512_maskz_loadu_ps(high, from + kTile))
                     : _mm512_setzero_si512();
      from += side.step;
    }
    if constexpr (kPairsFirst) turn(lines);
  } else {
    const __mmask16 inside = lanes_below(left);
    const float* from = side.data + first + at * side.depth_step;
    // Element i of the even line beside element i of the odd one.
    const __m512i beside = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23,
                                            7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
#pragma GCC unroll 16
    for (int64_t pair = 0; pair < kTile; ++pair) {
      const __m512 even = _mm512_maskz_loadu_ps(2 * pair < deep ? inside : 0, from);
      const __m512 odd = _mm512_maskz_loadu_ps(2 * pair + 1 < deep ? inside : 0, from + side.depth_step);
      lines[pair] = _mm512_permutexvar_epi16(beside, rounded(even, odd));
      from += 2 * side.depth_step;
    }
    if constexpr (!kPairsFirst) turn(lines);
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < kTile; ++i) _mm512_store_si512(to + i * kTileDepth, lines[i]);
}

#else

/// To the nearest, of two as near to the even one; a NaN stays one.
SYNCOPATE_INLINE uint16_t rounded(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

SYNCOPATE_INLINE float widened(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

template <bool kPairsFirst>
SYNCOPATE_INLINE void pack_tile(const HalfSide& side, int64_t first, int64_t at, uint16_t* to) {
  for (int64_t i = 0; i < kTile; ++i) {
    for (int64_t k = 0; k < kTileDepth; ++k) {
      const bool inside = first + i < side.count && at + k < side.depth;
      const float* const from = side.data + (first + i) * side.step + (at + k) * side.depth_step;
      to[kPairsFirst ? (k / 2 * kTile + i) * 2 + k % 2 : i * kTileDepth + k] = inside ? rounded(*from) : 0;
    }
  }
}

#endif

#if defined(__AMX_BF16__)

/// Palette 1; each of the eight tiles has 16 rows of 64 bytes.
alignas(64) static constexpr uint8_t kShapeOfTiles[64] = {
    1,  0,                                                       //
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0, 0,  0, 0,  0,         //
    64, 0,  64, 0,  64, 0,  64, 0,  64, 0, 64, 0, 64, 0, 64, 0,  // bytes in a row
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0, 0,  0, 0,  0, 0,  0,  //
    16, 16, 16, 16, 16, 16, 16, 16,                              // rows
};

/// This core's tiles, for as long as it lives. They are given back: whoever switches threads pays for tiles
/// in use.
class TileState {
 public:
  TileState() { _tile_loadconfig(kShapeOfTiles); }
  ~TileState() { _tile_release(); }
  TileState(const TileState&) = delete;
  TileState& operator=(const TileState&) = delete;
};

SYNCOPATE_INLINE void add_block(const uint16_t* a, const uint16_t* b, int64_t deep, const Sums& sums) {
  // The instructions' wrappers do not say that they read memory.
  __asm__ volatile("" ::: "memory");
  if (sums.start == nullptr) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    const int64_t row = sums.start_row * 4;
    const float* const below = sums.start + kTile * sums.start_row;
    _tile_loadd(0, sums.start, row);
    _tile_loadd(1, sums.start + kTile, row);
    _tile_loadd(2, below, row);
    _tile_loadd(3, below + kTile, row);
  }
  // A few rows at a time: all at once, tiles would wait for lines that are far away.
  const int64_t to_fetch = sums.next != nullptr ? 2 * kTile : 0, share = (2 * kTile + deep - 1) / deep;
  int64_t fetched = 0;
  for (int64_t at = 0; at < deep; ++at) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kTileSize, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + kTileSize, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    for (int64_t end = fetched + share; fetched < end && fetched < to_fetch; ++fetched) {
      __builtin_prefetch(sums.next + fetched * sums.to_row);
      __builtin_prefetch(sums.next + fetched * sums.to_row + kTile);
    }
    a += 2 * kTileSize;
    b += 2 * kTileSize;
  }
  const int64_t row = sums.to_row * 4;
  float* const below = sums.to + kTile * sums.to_row;
  _tile_stored(0, sums.to, row);
  _tile_stored(1, sums.to + kTile, row);
  _tile_stored(2, below, row);
  _tile_stored(3, below + kTile, row);
  __asm__ volatile("" ::: "memory");
}

#elif defined(__AVX512BF16__)

struct TileState {
  TileState() {}
};

static void add_block(const uint16_t* a, const uint16_t* b, int64_t deep, const Sums& sums) {
  constexpr int64_t kRows = 8;
  for (int64_t row = 0; row < 2 * kTile; row += kRows) {
    __m512 made[kRows][2] = {};
    if (sums.start != nullptr) {
#pragma GCC unroll 8
      for (int64_t i = 0; i < kRows; ++i) {
        const float* const from = sums.start + (row + i) * sums.start_row;
        made[i][0] = _mm512_loadu_ps(from);
        made[i][1] = _mm512_loadu_ps(from + kTile);
      }
    }
    const uint16_t* left = a + row * kTileDepth;
    const uint16_t* right = b;
    for (int64_t at = 0; at < deep; ++at) {
      for (int64_t pair = 0; pair < kTile; ++pair) {
        const __m512bh first = (__m512bh)_mm512_load_si512(right + pair * kTileDepth);
        const __m512bh second = (__m512bh)_mm512_load_si512(right + kTileSize + pair * kTileDepth);
#pragma GCC unroll 8
        for (int64_t i = 0; i < kRows; ++i) {
          int32_t both;
          __builtin_memcpy(&both, left + i * kTileDepth + 2 * pair, sizeof both);
          const __m512bh spread = (__m512bh)_mm512_set1_epi32(both);
          made[i][0] = _mm512_dpbf16_ps(made[i][0], spread, first);
          made[i][1] = _mm512_dpbf16_ps(made[i][1], spread, second);
        }
      }
      left += 2 * kTileSize;
      right += 2 * kTileSize;
    }
#pragma GCC unroll 8
    for (int64_t i = 0; i < kRows; ++i) {
      float* const to = sums.to + (row + i) * sums.to_row;
      _mm512_storeu_ps(to, made[i][0]);
      _mm512_storeu_ps(to + kTile, made[i][1]);
    }
  }
}

#else

struct TileState {
  TileState() {}
};

/// For tests: nothing here is faster than a product in fp32.
static void add_block(const uint16_t* a, const uint16_t* b, int64_t deep, const Sums& sums) {
  for (int64_t i = 0; i < 2 * kTile; ++i) {
    const uint16_t* const left = a + i * kTileDepth;
    for (int64_t side = 0; side < 2; ++side) {
      float made[kTile] = {};
      if (sums.start != nullptr) {
        const float* const from = sums.start + i * sums.start_row + side * kTile;
        for (int64_t j = 0; j < kTile; ++j) made[j] = from[j];
      }
      for (int64_t at = 0; at < deep; ++at) {
        const uint16_t* const right = b + (2 * at + side) * kTileSize;
        for (int64_t k = 0; k < kTileDepth; ++k) {
          const float factor = widened(left[2 * at * kTileSize + k]);
          const uint16_t* const line = right + k / 2 * kTileDepth + k % 2;
          for (int64_t j = 0; j < kTile; ++j) made[j] += factor * widened(line[2 * j]);
        }
      }
      float* const to = sums.to + i * sums.to_row + side * kTile;
      for (int64_t j = 0; j < kTile; ++j) to[j] = made[j];
    }
  }
}

#endif

}  // namespace syncopate::nn::kernels::SYNCOPATE_ISA
