#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncopate/parallel/slice.h"
#include "syncopate/tensor/flat_params.h"

namespace syncopate::parallel {

/// Where a model's parameters lie in its flat array: all that a server must know of a model.
struct Layout {
  int64_t size = 0;  ///< elements, gaps counted
  at::ScalarType type = at::kFloat;
  std::vector<tensor::FlatParams::Entry> entries;  ///< without their tensors
};

Layout layout_of(const tensor::FlatParams& params);
std::string to_text(const Layout& layout);
Layout layout_from(const std::string& text);

/// One shard per server, as near to the same size as the cuts allow: anywhere for an optimizer that treats
/// elements one by one, between tensors (`whole_tensors`) for one that looks at a tensor's norm. Throws
/// ConfigError when there are too many servers for that.
std::vector<Slice> shards_of(const Layout& layout, int servers, bool whole_tensors);

/// The shard as arrays of its own.
Layout part_of(const Layout& layout, const Slice& shard);

}  // namespace syncopate::parallel
