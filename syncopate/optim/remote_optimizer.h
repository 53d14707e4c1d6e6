#pragma once

#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/optim/optimizer.h"

namespace syncopate::optim {

/// For a replica whose parameters are updated by another process: has no state.
class RemoteOptimizer : public Optimizer {
 public:
  void step(tensor::FlatParams&, double, double) override {
    throw InternalError("the update is made elsewhere");
  }
  std::vector<tensor::NamedTensor> state() const override { return {}; }
  int64_t steps_done() const override { return 0; }
  void set_steps_done(int64_t) override {}
};

}  // namespace syncopate::optim
