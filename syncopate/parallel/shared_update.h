#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "syncopate/base/share.h"
#include "syncopate/comm/group.h"
#include "syncopate/parallel/replica.h"

namespace syncopate::parallel {

/// Ranks that share memory keep the parameters and the optimizer's state once, and their gradients' sum once
/// (FlatParams::sums); each updates a part of them. That is the first stage of ZeRO (Rajbhandari et al., SC
/// 2020) without anything to send. What comes out is bit for bit what each would have computed alone.
class SharedUpdate {
 public:
  /// From here on `replica.shared` and `params.sums` are set; where memory, device or optimizer does not
  /// allow it, nothing has changed. Collective; all replicas are alike. `group` must outlive the replica's
  /// steps.
  static void begin(comm::Group& group, Replica& replica);

  SharedUpdate(comm::Group& group, int64_t size, at::Tensor squares);

  // Collective; what this rank updates of the sum is in place.
  struct Norm {
    double value = 0, waited = 0;  ///< `waited` for the others, in seconds
  };
  /// Of the sum, as optim::gradient_norm has it.
  Norm norm(const Replica& replica, double scale) const;
  /// Updates this rank's part and returns when all parts are updated: the seconds that it waited.
  double step(const Replica& replica, double lr, double scale) const;

 private:
  double meet(Trace* trace, const char* what) const;

  comm::Group& group_;
  Share mine_;          ///< what this rank updates: whole blocks of a norm
  at::Tensor squares_;  ///< sums of squares of all blocks, each written by the rank whose it is
};

}  // namespace syncopate::parallel
