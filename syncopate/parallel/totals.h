#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/engine.h"

namespace syncopate::parallel {

/// A loss summed over ranks, and the number of what it is a sum over.
struct TotalLoss {
  double sum = 0, count = 0;
};

/// What ranks may wish beside training. Of what clocks decide rank 0's word counts, as they differ.
struct Wishes {
  bool stop = false;        ///< the run ends here, to be resumed; any rank may ask
  bool time_is_up = false;  ///< the run ends here for good
  bool save = false;        ///< a checkpoint is due

  bool any() const { return stop || time_is_up || save; }
  int64_t bits() const { return (stop ? 1 : 0) | (time_is_up ? 2 : 0) | (save ? 4 : 0); }
  static Wishes of_bits(int64_t bits) { return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0}; }
};

/// A step's loss and count summed over ranks, those of earlier steps that were not told yet, and what ranks
/// wish: one exchange. It is started after the last forward pass and runs behind the backward pass.
class Totals {
 public:
  /// `by_trips`: by one message to each rank instead of a ring (comm/direct_sum.h).
  explicit Totals(comm::Group& group, bool by_trips = false) : group_(group), by_trips_(by_trips) {}
  /// As many `earlier` steps on every rank.
  void start(const LocalLoss& mine, std::span<const LocalLoss> earlier, const Wishes& wishes);
  void wait() { pending_.wait(); }

  TotalLoss loss() const { return at(0); }
  std::vector<TotalLoss> earlier() const;  ///< in the order in which they were given
  Wishes wishes() const;

 private:
  TotalLoss at(int64_t row) const;

  comm::Group& group_;
  bool by_trips_;
  at::Tensor sums_;  ///< double [2 + earlier, 2]: the step's loss, wishes, earlier steps' losses
  comm::Pending pending_;
};

}  // namespace syncopate::parallel
