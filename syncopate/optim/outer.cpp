#include "syncopate/optim/outer.h"

#include <ATen/ATen.h>

#include <cmath>

#include "syncopate/base/error.h"

namespace syncopate::optim {

Outer::Outer(const OuterOptions& options) : options_(options) {
  constexpr double kMost = 1e6;  // a float holds it, and what it does to a model is done long before
  if (!(options.lr > 0 && options.lr <= kMost)) {
    throw ConfigError("outer_lr must be above 0 and at most {:.0f}, got {}", kMost, options.lr);
  }
  if (!(options.momentum >= 0 && options.momentum < 1)) {
    throw ConfigError("outer_momentum must be at least 0 and below 1, got {}", options.momentum);
  }
}

void Outer::step(at::Tensor values, at::Tensor momentum, const at::Tensor& gradient) const {
  const at::NoGradGuard no_grad;
  if (!has_momentum()) {
    values.add_(gradient, -options_.lr);
    return;
  }
  momentum.mul_(options_.momentum).add_(gradient);
  if (options_.nesterov) {
    values.add_(gradient, -options_.lr).add_(momentum, -options_.lr * options_.momentum);
  } else {
    values.add_(momentum, -options_.lr);
  }
}

}  // namespace syncopate::optim
