#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "syncopate/optim/optimizer.h"
#include "syncopate/tensor/flat_params.h"
#include "syncopate/tensor/parallel.h"

namespace syncopate::optim {

/// Whether our own kernels may run; ATen's operations do otherwise.
inline bool use_kernels(const OptimizerOptions& options, const tensor::FlatParams& params) {
  return !options.plain && params.values.is_cpu() && params.values.scalar_type() == at::kFloat;
}

/// Calls `update(begin, end, decay)` for each run of neighbours that decay alike; the runs cover the flat
/// arrays.
template <typename Update>
void for_each_span(const tensor::FlatParams& params, const Update& update) {
  const auto& entries = params.entries();
  for (size_t first = 0; first < entries.size();) {
    size_t last = first + 1;
    while (last < entries.size() && entries[last].decay == entries[first].decay) ++last;
    update(entries[first].offset, last < entries.size() ? entries[last].offset : params.size(),
           entries[first].decay);
    first = last;
  }
}

/// The same for the part of each run that lies in from..to-1.
template <typename Update>
void for_each_span(const tensor::FlatParams& params, int64_t from, int64_t to, const Update& update) {
  for_each_span(params, [&](int64_t begin, int64_t end, bool decay) {
    begin = std::max(begin, from);
    end = std::min(end, to);
    if (begin < end) update(begin, end, decay);
  });
}

/// Calls `update(begin, end, decay)` for runs of elements that cover first..last-1 of the flat arrays, in
/// parallel.
/// Elementwise work only: where a run is cut does not change a result, so any number of threads gives the
/// same bits.
template <typename Update>
void for_each_run(const tensor::FlatParams& params, int64_t first, int64_t last, const Update& update) {
  constexpr int64_t kGrain = 1 << 16;
  for_each_span(params, first, last, [&](int64_t begin, int64_t end, bool decay) {
    tensor::parallel_for(begin, end, kGrain, [&](int64_t from, int64_t to) { update(from, to, decay); });
  });
}

template <typename Update>
void for_each_run(const tensor::FlatParams& params, const Update& update) {
  for_each_run(params, 0, params.size(), update);
}

/// A piece of one entry.
struct Block {
  size_t entry = 0;
  int64_t begin = 0, end = 0;  ///< elements of the flat arrays
};

/// Every entry in pieces of a fixed size, so that sums over pieces do not depend on the number of threads.
inline std::vector<Block> blocks_of(const tensor::FlatParams& params) {
  constexpr int64_t kSize = 1 << 15;
  std::vector<Block> blocks;
  for (size_t i = 0; i < params.entries().size(); ++i) {
    const auto& entry = params.entries()[i];
    for (int64_t at = 0; at < entry.size; at += kSize) {
      blocks.push_back({i, entry.offset + at, entry.offset + std::min(at + kSize, entry.size)});
    }
  }
  return blocks;
}

/// Calls `work(number, block)` for every block, in parallel.
template <typename Work>
void for_each_block(const std::vector<Block>& blocks, const Work& work) {
  tensor::parallel_for(0, static_cast<int64_t>(blocks.size()), 1, [&](int64_t from, int64_t to) {
    for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(to); ++i) work(i, blocks[i]);
  });
}

/// What the blocks of each entry sum up to, added in their order.
inline std::vector<double> sums_by_entry(const std::vector<Block>& blocks,
                                         const std::vector<double>& of_blocks, size_t entries) {
  std::vector<double> sums(entries);
  for (size_t i = 0; i < blocks.size(); ++i) sums[blocks[i].entry] += of_blocks[i];
  return sums;
}

}  // namespace syncopate::optim
