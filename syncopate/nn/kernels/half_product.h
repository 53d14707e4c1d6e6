#pragma once

#include "syncopate/nn/kernels/half_tiles.h"
#include "syncopate/nn/kernels/product.h"

// c = start + a b in bf16 with sums in fp32, from fp32 arrays. Both sides are rounded while they are packed
// into tiles of 16 by 32: b as a whole, by half_pack; a block of a's rows by whoever multiplies it, so that
// it stays in the cache of the core that needs it. Which rows and columns are made together changes no sum.
namespace syncopate::nn::kernels::SYNCOPATE_ISA {

static constexpr int64_t kBlock = 2 * kTile;  ///< rows and columns of c that are made at once
/// Tiles along the depth whose sums are made before c is written: two strips of them stay in the first cache.
static constexpr int64_t kDeepTiles = 12;

SYNCOPATE_INLINE int64_t blocks_of(int64_t count) { return (count + kBlock - 1) / kBlock; }
SYNCOPATE_INLINE int64_t tiles_of_depth(int64_t depth) { return (depth + kTileDepth - 1) / kTileDepth; }

static int64_t half_size(int64_t count, int64_t depth) {
  return blocks_of(count) * kBlock * tiles_of_depth(depth) * kTileDepth;
}

/// Blocks first..last-1 of one side; `packed` is where block `first` goes.
template <bool kPairsFirst>
SYNCOPATE_INLINE void pack_side(const HalfSide& side, int64_t first, int64_t last, uint16_t* packed) {
  const int64_t deep = tiles_of_depth(side.depth), begin = 2 * first, end = 2 * last;
  const auto pack = [&](int64_t strip, int64_t at) {
    const int64_t tile = ((strip / 2 - first) * deep + at) * 2 + strip % 2;
    pack_tile<kPairsFirst>(side, strip * kTile, at * kTileDepth, packed + tile * kTileSize);
  };
  // In the order in which the array lies in memory.
  if (side.depth_step == 1) {
    for (int64_t strip = begin; strip < end; ++strip) {
      for (int64_t at = 0; at < deep; ++at) pack(strip, at);
    }
  } else {
    for (int64_t at = 0; at < deep; ++at) {
      for (int64_t strip = begin; strip < end; ++strip) pack(strip, at);
    }
  }
}

static void half_pack(const HalfSide& b, int64_t first, int64_t last, uint16_t* packed) {
  pack_side<true>(b, first / kBlock, blocks_of(last), packed + half_size(first, b.depth));
}

/// A block over the edge of c is made beside it.
static void add_edge(const uint16_t* a, const uint16_t* b, int64_t deep, const Sums& sums, int64_t rows,
                     int64_t columns) {
  alignas(64) float beside[kBlock * kBlock] = {};
  if (sums.start != nullptr) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) beside[i * kBlock + j] = sums.start[i * sums.start_row + j];
    }
  }
  add_block(a, b, deep, {beside, kBlock, beside, kBlock, nullptr});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) sums.to[i * sums.to_row + j] = beside[i * kBlock + j];
  }
}

/// Rows and columns first..last-1 of c; both begin at a multiple of kBlock. `scratch` has room for the rows
/// of a: half_size elements.
static void half_multiply(const HalfProductJob& job, int64_t first_row, int64_t last_row,
                          int64_t first_column, int64_t last_column, uint16_t* scratch) {
  const int64_t deep = tiles_of_depth(job.a.depth), block = deep * 2 * kTileSize;
  pack_side<false>(job.a, first_row / kBlock, blocks_of(last_row), scratch);
  const TileState tiles;
  const int64_t parts = (deep + kDeepTiles - 1) / kDeepTiles;
  for (int64_t column = first_column; column < last_column; column += kBlock) {
    const uint16_t* const b = job.packed_b + column / kBlock * block;
    const int64_t columns = last_column - column < kBlock ? last_column - column : kBlock;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t at = deep * part / parts, count = deep * (part + 1) / parts - at;
      const int64_t skipped = at * 2 * kTileSize;
      for (int64_t row = first_row; row < last_row; row += kBlock) {
        const uint16_t* const a = scratch + (row - first_row) / kBlock * block;
        const int64_t rows = last_row - row < kBlock ? last_row - row : kBlock;
        float* const c = job.c + row * job.c_row + column;
        Sums sums = {c, job.c_row, c, job.c_row, nullptr};
        if (part == 0) {
          if (row + 2 * kBlock <= last_row) sums.next = c + kBlock * job.c_row;
          sums.start = job.start == nullptr ? nullptr : job.start + row * job.start_row + column;
          sums.start_row = job.start_row;
        }
        if (rows == kBlock && columns == kBlock) {
          add_block(a + skipped, b + skipped, count, sums);
        } else {
          add_edge(a + skipped, b + skipped, count, sums, rows, columns);
        }
      }
    }
  }
}

/// Elements that multiply_in_half needs for these sizes.
SYNCOPATE_INLINE int64_t half_room(int64_t rows, int64_t columns, int64_t depth) {
  return half_size(rows, depth) + half_size(columns, depth);
}

/// A product that stays in the cache. `room` is aligned to 64 bytes.
static void multiply_in_half(const Product& p, uint16_t* room) {
  HalfProductJob job;
  job.a = {p.a, p.rows, p.depth, p.a_row, p.a_column};
  job.b = {p.b, p.columns, p.depth, p.b_column, p.b_row};
  job.start = p.add ? p.c : nullptr;
  job.start_row = p.c_row;
  job.c = p.c;
  job.c_row = p.c_row;
  uint16_t* const packed_b = room + half_size(p.rows, p.depth);
  half_pack(job.b, 0, p.columns, packed_b);
  job.packed_b = packed_b;
  half_multiply(job, 0, p.rows, 0, p.columns, room);
}

}  // namespace syncopate::nn::kernels::SYNCOPATE_ISA
