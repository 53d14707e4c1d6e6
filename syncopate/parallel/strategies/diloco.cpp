#include "syncopate/parallel/strategies/diloco.h"

#include <ATen/ATen.h>

#include "syncopate/base/error.h"

namespace syncopate::parallel {

DiLoCo::DiLoCo(comm::Group& group, std::unique_ptr<Averager> averager, const Options& options,
               const OuterRound& round)
    : LocalSteps(group, std::move(averager), options, nullptr), outer_(round.outer), mixing_(round.mixing) {
  if (!(mixing_ >= 0 && mixing_ < 1)) {
    throw ConfigError("mixing must be at least 0 and below 1, got {}", mixing_);
  }
}

std::string DiLoCo::model_name() const {
  return replicas_are_equal() ? "outer model (average of the workers)" : LocalSteps::model_name();
}

LocalSteps::Keeps DiLoCo::keeps() const {
  return {.anchor = true, .momentum = outer_.has_momentum(), .copy = false};
}

void DiLoCo::apply(Slices slices) const {
  outer_.step(slices.anchor, slices.momentum, slices.mean);
  if (mixing_ == 0) {
    slices.values.copy_(slices.anchor);
  } else {
    slices.values.mul_(mixing_).add_(slices.anchor, 1 - mixing_);
  }
}

}  // namespace syncopate::parallel
