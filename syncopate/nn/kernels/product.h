#pragma once

#include "syncopate/nn/kernels/lanes.h"

// Matrix products small enough to stay in the cache, for one head of attention. Large products are BLAS's.
namespace syncopate::nn::kernels::SYNCOPATE_ISA {

#if defined(__AVX512F__)
static constexpr int kTileRows = 8;
#else
static constexpr int kTileRows = 6;  // with two registers across: 12 sums of 16 registers
#endif

/// c [rows, columns] = a [rows, depth] b [depth, columns] (+ c). Element (i, k) of `a` is at i * a_row + k *
/// a_column, so that it may be transposed; rows of c are contiguous, and rows of b unless the product is in
/// bf16.
struct Product {
  int64_t rows, columns, depth;
  const float* a;
  int64_t a_row, a_column;
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  bool add;
  int64_t b_column = 1;
};

/// kRows rows and, in registers, kAcross columns of the result.
template <int kRows, int kAcross, typename Lanes>
SYNCOPATE_INLINE void tile(const Product& p, int64_t row, int64_t column, Lanes lanes) {
  Floats sums[kRows][kAcross] = {};
  const float* a = p.a + row * p.a_row;
  const float* b = p.b + column;
  for (int64_t k = 0; k < p.depth; ++k) {
    Floats across[kAcross];
#pragma GCC unroll 4
    for (int j = 0; j < kAcross; ++j) across[j] = lanes.load(b + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Floats left = splat(a[i * p.a_row]);
#pragma GCC unroll 4
      for (int j = 0; j < kAcross; ++j) sums[i][j] += left * across[j];
    }
    a += p.a_column;
    b += p.b_row;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kAcross; ++j) {
      float* c = p.c + (row + i) * p.c_row + column + j * kLanes;
      lanes.store(c, p.add ? lanes.load(c) + sums[i][j] : sums[i][j]);
    }
  }
}

/// kRows rows of the result.
template <int kRows>
static void strip(const Product& p, int64_t row) {
  int64_t column = 0;
  for (; column + 2 * kLanes <= p.columns; column += 2 * kLanes) tile<kRows, 2>(p, row, column, Whole{});
  along(p.columns - column, [&](int64_t c, auto lanes) { tile<kRows, 1>(p, row, column + c, lanes); });
}

template <int kRows>
SYNCOPATE_INLINE void last_rows(const Product& p, int64_t row, int64_t left) {
  if constexpr (kRows > 0) {
    if (left == kRows) {
      strip<kRows>(p, row);
    } else {
      last_rows<kRows - 1>(p, row, left);
    }
  }
}

SYNCOPATE_INLINE void multiply(const Product& p) {
  int64_t row = 0;
  for (; row + kTileRows <= p.rows; row += kTileRows) strip<kTileRows>(p, row);
  last_rows<kTileRows - 1>(p, row, p.rows - row);
}

/// to [columns, rows] = from [rows, columns] transposed.
SYNCOPATE_INLINE void transpose(const float* from, int64_t from_row, int64_t rows, int64_t columns,
                                float* to) {
  constexpr int64_t kBlock = 16;
  for (int64_t r = 0; r < rows; r += kBlock) {
    const int64_t end = r + kBlock < rows ? r + kBlock : rows;
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t i = r; i < end; ++i) to[c * rows + i] = from[i * from_row + c];
    }
  }
}

}  // namespace syncopate::nn::kernels::SYNCOPATE_ISA
