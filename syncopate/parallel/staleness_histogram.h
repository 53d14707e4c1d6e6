#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace syncopate::parallel {

/// How stale updates were: an update's staleness is how many others have changed the parameters since those
/// were read that it was computed from.
class StalenessHistogram {
 public:
  explicit StalenessHistogram(int workers);
  void count(int worker, int64_t staleness);

  /// By worker, then by staleness: the number of updates. The last of them holds that staleness and more.
  std::vector<std::vector<int64_t>> counts() const;
  const at::Tensor& tensor() const { return counts_; }  ///< int64 [workers, stalenesses], for checkpoints

 private:
  at::Tensor counts_;
};

}  // namespace syncopate::parallel
