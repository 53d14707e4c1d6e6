#include "syncopate/optim/adamw.h"

#include <ATen/ATen.h>

#include <cmath>

#include "syncopate/optim/kernels.h"
#include "syncopate/optim/pass.h"

namespace syncopate::optim {

AdamW::AdamW(const OptimizerOptions& options, const tensor::FlatParams& params)
    : options_(options), first_(at::zeros_like(params.values)), second_(at::zeros_like(params.values)) {}

void AdamW::step(tensor::FlatParams& params, double lr, double grad_scale) {
  ++steps_;
  const double correction1 = 1 - std::pow(options_.beta1, static_cast<double>(steps_));
  const double correction2 = 1 - std::pow(options_.beta2, static_cast<double>(steps_));
  AdamWPass pass{.keep1 = static_cast<float>(options_.beta1),
                 .take1 = static_cast<float>(1 - options_.beta1),
                 .keep2 = static_cast<float>(options_.beta2),
                 .take2 = static_cast<float>(1 - options_.beta2),
                 .step_size = static_cast<float>(lr / correction1),
                 .root_correction = static_cast<float>(1 / std::sqrt(correction2)),
                 .eps = static_cast<float>(options_.eps),
                 .grad_scale = static_cast<float>(grad_scale)};
  float* const values = params.values.data_ptr<float>();
  const float* const grads = params.grads.data_ptr<float>();
  float* const first = first_.data_ptr<float>();
  float* const second = second_.data_ptr<float>();
  for_each_run(params, [&](int64_t from, int64_t to, bool decay) {
    const auto shrink = static_cast<float>(decay ? 1 - lr * options_.weight_decay : 1.0);
    adamw_pass(pass, shrink, values + from, grads + from, first + from, second + from, to - from);
  });
}

}  // namespace syncopate::optim
