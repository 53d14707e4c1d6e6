#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

#include "syncopate/tensor/flat_params.h"

namespace syncopate::optim {

/// Calls `update(begin, end, decay)` for runs of elements that cover the flat arrays, in parallel.
/// Elementwise work only: where a run is cut does not change a result, so any number of threads gives the
/// same bits.
template <typename Update>
void for_each_run(const tensor::FlatParams& params, const Update& update) {
  constexpr int64_t kGrain = 1 << 16;
  const auto& entries = params.entries();
  for (size_t first = 0; first < entries.size();) {
    size_t last = first + 1;
    while (last < entries.size() && entries[last].decay == entries[first].decay) ++last;
    const int64_t begin = entries[first].offset;
    const int64_t end = last < entries.size() ? entries[last].offset : params.size();
    const bool decay = entries[first].decay;
    at::parallel_for(begin, end, kGrain, [&](int64_t from, int64_t to) { update(from, to, decay); });
    first = last;
  }
}

}  // namespace syncopate::optim
