#pragma once

#include <cmath>
#include <cstdint>

#include "syncopate/optim/kernels.h"
#include "syncopate/optim/optimizer.h"

// What AdamW and LAMB have in common.
namespace syncopate::optim {

/// What Adam's means lack because they started at zero, in step number `step`.
struct BiasCorrections {
  BiasCorrections(const OptimizerOptions& options, int64_t step)
      : first(1 - std::pow(options.beta1, static_cast<double>(step))),
        second(1 - std::pow(options.beta2, static_cast<double>(step))) {}
  double first, second;
};

/// `lr` is 1 where each tensor takes its own.
inline AdamWPass adam_pass(const OptimizerOptions& options, int64_t step, double lr, double grad_scale) {
  const BiasCorrections corrections(options, step);
  return {.keep1 = static_cast<float>(options.beta1),
          .take1 = static_cast<float>(1 - options.beta1),
          .keep2 = static_cast<float>(options.beta2),
          .take2 = static_cast<float>(1 - options.beta2),
          .step_size = static_cast<float>(lr / corrections.first),
          .root_correction = static_cast<float>(1 / std::sqrt(corrections.second)),
          .eps = static_cast<float>(options.eps),
          .grad_scale = static_cast<float>(grad_scale)};
}

}  // namespace syncopate::optim
