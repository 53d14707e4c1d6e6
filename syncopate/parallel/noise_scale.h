#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/averager.h"

namespace syncopate::parallel {

/// The gradient noise scale, "simple" as in McCandlish et al. 2018 (appendix A.1): the trace of the
/// gradient's covariance between examples over the square of its norm, in examples. A batch far below it is
/// mostly noise, far above it mostly repetition. Estimated from squared norms of gradients over few examples
/// (each rank's own, before they are averaged) and over many (the average), every few steps: one more pass
/// over the gradient then, and nothing is sent before the end.
class NoiseScale {
 public:
  static constexpr int64_t kEvery = 4;  ///< steps

  /// The averager that also looks at each rank's gradients before it sums them. This must outlive it.
  std::unique_ptr<Averager> looking(std::unique_ptr<Averager> inner);

  bool measures() const { return measures_; }  ///< in the step that goes on
  /// A step is made: `mine` and `all` are the squared norms of the mean gradient over this rank's `few`
  /// examples and over all ranks' `many`.
  void add(double mine, double few, double all, double many);
  /// Of this rank's sum of gradients in the step that goes on, as it was before the exchange.
  double own_squares() const { return squares_; }

  /// Over all ranks and the steps so far; not a number where nothing is known. Collective.
  double estimate(comm::Group& group) const;

 private:
  class Looking;
  bool measures_ = false;
  double squares_ = 0;
  double traces_ = 0, norms_ = 0;  ///< sums of estimates of the covariance's trace and of the squared norm
};

}  // namespace syncopate::parallel
