#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/optim/flat_views.h"
#include "syncopate/optim/optimizer.h"

namespace syncopate::optim {

/// An optimizer of this process: its options, what it keeps between steps and how many it has made.
class StatefulOptimizer : public Optimizer {
 public:
  const OptimizerOptions& options() const { return options_; }
  std::vector<tensor::NamedTensor> state() const override { return kept_; }
  int64_t steps_done() const override { return steps_; }
  void set_steps_done(int64_t steps) override { steps_ = steps; }

 protected:
  explicit StatefulOptimizer(const OptimizerOptions& options) : options_(options) {}

  /// Zeros beside the parameters, which a checkpoint holds under this name.
  at::Tensor keep(const char* name, const tensor::FlatParams& params) {
    kept_.push_back({name, zeros_beside(params)});
    return kept_.back().tensor;
  }

  OptimizerOptions options_;
  int64_t steps_ = 0;

 private:
  std::vector<tensor::NamedTensor> kept_;
};

}  // namespace syncopate::optim
