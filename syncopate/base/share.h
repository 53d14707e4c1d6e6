#pragma once

#include <algorithm>
#include <cstdint>

namespace syncopate {

/// Elements begin..end-1 of something that is shared out.
struct Share {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

/// What one of `ranks` has of `count` elements: as much as the others but for a grain, in whole grains except
/// at the end of all.
inline Share share_of(int64_t count, int rank, int ranks, int64_t grain = 1) {
  const int64_t grains = (count + grain - 1) / grain;
  const auto border = [&](int64_t k) { return std::min(count, grains * k / ranks * grain); };
  return {border(rank), border(int64_t{rank} + 1)};
}

/// Grains in which ranks share out what a codec packs: a whole number of its buckets.
inline constexpr int64_t kPackedGrain = 512;

}  // namespace syncopate
