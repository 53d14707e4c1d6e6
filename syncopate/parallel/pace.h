#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace syncopate::parallel {

/// Who made how many updates, and how old the parameters were that they were computed from.
struct Pace {
  /// By worker, then by staleness: how many of its updates came after so many others had changed the
  /// parameters it had read. The last bin holds that many and more.
  std::vector<std::vector<int64_t>> staleness;

  explicit Pace(int workers = 0) : staleness(static_cast<size_t>(workers)) {}

  void count(int worker, int64_t late) {
    constexpr int64_t kBins = 128;
    auto& bins = staleness[static_cast<size_t>(worker)];
    const auto bin = static_cast<size_t>(std::clamp<int64_t>(late, 0, kBins - 1));
    if (bins.size() <= bin) bins.resize(bin + 1);
    ++bins[bin];
  }
};

}  // namespace syncopate::parallel
