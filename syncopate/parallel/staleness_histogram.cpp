#include "syncopate/parallel/staleness_histogram.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace syncopate::parallel {
namespace {

constexpr int64_t kBins = 128;

}  // namespace

StalenessHistogram::StalenessHistogram(int workers) : counts_(at::zeros({workers, kBins}, at::kLong)) {}

void StalenessHistogram::count(int worker, int64_t staleness) {
  ++counts_.data_ptr<int64_t>()[worker * kBins + std::clamp<int64_t>(staleness, 0, kBins - 1)];
}

std::vector<std::vector<int64_t>> StalenessHistogram::counts() const {
  std::vector<std::vector<int64_t>> rows;
  for (int64_t worker = 0; worker < counts_.size(0); ++worker) {
    const int64_t* const row = counts_.data_ptr<int64_t>() + worker * kBins;
    int64_t used = kBins;
    while (used > 0 && row[used - 1] == 0) --used;
    rows.emplace_back(row, row + used);
  }
  return rows;
}

}  // namespace syncopate::parallel
