#include "syncopate/optim/sgd.h"

#include <ATen/ATen.h>

#include "syncopate/optim/kernels.h"
#include "syncopate/optim/pass.h"

namespace syncopate::optim {

Sgd::Sgd(const OptimizerOptions& options, const tensor::FlatParams& params)
    : options_(options), momentum_(at::zeros_like(params.values)) {}

void Sgd::step(tensor::FlatParams& params, double lr, double grad_scale) {
  const auto keep = static_cast<float>(steps_ == 0 ? 0.0 : options_.momentum);
  ++steps_;
  float* const values = params.values.data_ptr<float>();
  const float* const grads = params.grads.data_ptr<float>();
  float* const momentum = momentum_.data_ptr<float>();
  for_each_run(params, [&](int64_t from, int64_t to, bool decay) {
    const auto pull = static_cast<float>(decay ? options_.weight_decay : 0.0);
    sgd_pass({.keep = keep, .lr = static_cast<float>(lr), .grad_scale = static_cast<float>(grad_scale)}, pull,
             values + from, grads + from, momentum + from, to - from);
  });
}

}  // namespace syncopate::optim
