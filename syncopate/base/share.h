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

/// The part of `count` elements that falls to one of `ranks`. Parts are whole grains, except that the last
/// may end in the middle of one, and no two differ by more than a grain.
inline Share share_of(int64_t count, int rank, int ranks, int64_t grain = 1) {
  const int64_t grains = (count + grain - 1) / grain;
  const auto border = [&](int64_t k) { return std::min(count, grains * k / ranks * grain); };
  return {border(rank), border(int64_t{rank} + 1)};
}

/// Grains in which ranks share out what a codec packs: a whole number of its buckets.
inline constexpr int64_t kPackedGrain = 512;

}  // namespace syncopate
