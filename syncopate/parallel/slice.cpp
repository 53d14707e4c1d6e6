#include "syncopate/parallel/slice.h"

#include <ATen/ATen.h>

#include <cstdlib>

#include "syncopate/base/error.h"

namespace syncopate::parallel {

at::Tensor Slice::of(const at::Tensor& flat) const {
  return flat.defined() ? flat.narrow(0, begin, size()) : at::Tensor();
}

std::vector<Slice> split_between_tensors(const std::vector<tensor::FlatParams::Entry>& entries, int64_t size,
                                         int64_t parts) {
  const auto count = static_cast<int64_t>(entries.size());
  check(1 <= parts && parts <= count, "one entry for each part");
  const auto edge = [&](int64_t entry) {
    return entry < count ? entries[static_cast<size_t>(entry)].offset : size;
  };
  std::vector<Slice> slices;
  int64_t first = 0;  // entry
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t ideal = size / parts * (i + 1);
    const int64_t latest = count - (parts - i - 1);  // leaves one for each of the others
    int64_t last = i + 1 == parts ? count : first + 1;
    while (last < latest && std::abs(edge(last + 1) - ideal) <= std::abs(edge(last) - ideal)) ++last;
    slices.push_back({edge(first), edge(last)});
    first = last;
  }
  return slices;
}

}  // namespace syncopate::parallel
