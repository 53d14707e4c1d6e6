#include "syncopate/parallel/strategies/local_sgd.h"

#include <ATen/ATen.h>

#include "syncopate/base/error.h"

namespace syncopate::parallel {

LocalSgd::LocalSgd(comm::Group& group, std::unique_ptr<Averager> averager, const Options& options,
                   bool differences, std::unique_ptr<Strategy> before)
    : LocalSteps(group, std::move(averager), options, std::move(before)), differences_(differences) {
  check(options.rounds.fragments == 1, "Local SGD averages the whole model");
}

LocalSteps::Keeps LocalSgd::keeps() const {
  return {.anchor = differences_, .momentum = false, .copy = options().rounds.delay > 0};
}

void LocalSgd::apply(Slices slices) const {
  at::Tensor mean = slices.mean;
  if (differences_) mean = slices.anchor.sub_(slices.mean);
  if (slices.copy.defined()) {
    slices.values.add_(slices.copy.neg_().add_(mean));  // the copy has served
  } else if (differences_) {
    slices.values.copy_(mean);
  }
}

}  // namespace syncopate::parallel
