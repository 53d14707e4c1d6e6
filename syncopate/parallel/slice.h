#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/tensor/flat_params.h"

namespace syncopate::parallel {

/// Elements begin..end-1 of a flat array.
struct Slice {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  at::Tensor of(const at::Tensor& flat) const;  ///< undefined where `flat` is
};

/// An array of `size` elements in so many neighbouring slices, cut where an entry begins and as near to the
/// same size as that allows with one entry or more in each. At most as many parts as entries.
std::vector<Slice> split_between_tensors(const std::vector<tensor::FlatParams::Entry>& entries, int64_t size,
                                         int64_t parts);

}  // namespace syncopate::parallel
