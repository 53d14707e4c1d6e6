#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "syncopate/parallel/slice.h"

namespace syncopate::parallel {

/// When workers that update by themselves bring what part of the model together. A pure function of the
/// number of local steps done, so it needs no state and is alike on all ranks.
struct Rounds {
  int64_t every = 8;      ///< local steps between two exchanges of the same part
  int64_t fragments = 1;  ///< parts, exchanged in turn every `every / fragments` steps
  int64_t delay = 0;      ///< steps from the start of an exchange to when its result is applied

  void validate() const;  ///< throws ConfigError

  /// The fragment whose exchange starts after `done` local steps.
  std::optional<size_t> starting(int64_t done) const;
  /// The fragment whose result is applied after `done` local steps.
  std::optional<size_t> applying(int64_t done) const { return starting(done - delay); }
  /// The fragment's exchange has started and its result is not yet applied.
  bool under_way(size_t fragment, int64_t done) const;
};

/// The parameters in `fragments` neighbouring groups of about equal size. Throws ConfigError when there are
/// fewer parameter tensors than fragments.
std::vector<Slice> fragments_of(const tensor::FlatParams& params, int64_t fragments);

}  // namespace syncopate::parallel
