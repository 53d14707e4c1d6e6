#include "syncopate/optim/sgd.h"

#include <ATen/ATen.h>

#include "syncopate/optim/flat_views.h"
#include "syncopate/optim/kernels.h"
#include "syncopate/optim/pass.h"

namespace syncopate::optim {

Sgd::Sgd(const OptimizerOptions& options, const tensor::FlatParams& params)
    : StatefulOptimizer(options), momentum_(keep("momentum", params)) {}

void Sgd::step(tensor::FlatParams& params, double lr, double grad_scale) {
  if (updates_parts(params)) return step_part(params, lr, grad_scale, 0, params.size());
  const double keep = kept();
  ++steps_;
  step_plainly(params, keep, lr, grad_scale);
}

bool Sgd::updates_parts(const tensor::FlatParams& params) const { return use_kernels(options_, params); }

double Sgd::kept() const { return steps_ == 0 ? 0.0 : options_.momentum; }

void Sgd::step_part(tensor::FlatParams& params, double lr, double grad_scale, int64_t begin, int64_t end) {
  const double keep = kept();
  ++steps_;
  // x -= lr * (from_grad * g + from_momentum * m): Nesterov looks one momentum step ahead.
  const SgdPass pass{.keep = static_cast<float>(keep),
                     .lr_grad = static_cast<float>(options_.nesterov ? lr : 0.0),
                     .lr_momentum = static_cast<float>(options_.nesterov ? lr * options_.momentum : lr),
                     .grad_scale = static_cast<float>(grad_scale)};
  float* const values = params.values.data_ptr<float>();
  const float* const grads = params.summed().data_ptr<float>();
  float* const momentum = momentum_.data_ptr<float>();
  for_each_run(params, begin, end, [&](int64_t from, int64_t to, bool decay) {
    const auto pull = static_cast<float>(decay ? options_.weight_decay : 0.0);
    const auto run = options_.nesterov ? nesterov_pass : sgd_pass;
    run(pass, pull, values + from, grads + from, momentum + from, to - from);
  });
}

void Sgd::step_plainly(tensor::FlatParams& params, double keep, double lr, double grad_scale) {
  const at::NoGradGuard no_grad;
  const auto decaying = decaying_views(params, params.values);
  const bool decays = options_.weight_decay > 0 && !decaying.empty();
  momentum_.mul_(keep).add_(params.grads, grad_scale);
  if (decays) {
    const auto pulled = decaying_views(params, momentum_);
    if (params.values.scalar_type() == momentum_.scalar_type()) {
      at::_foreach_add_(pulled, decaying, options_.weight_decay);
    } else {
      for (size_t i = 0; i < pulled.size(); ++i) pulled[i].add_(decaying[i], options_.weight_decay);
    }
  }
  if (!options_.nesterov) {
    params.values.add_(momentum_, -lr);
    return;
  }
  if (decays) at::_foreach_mul_(decaying, 1 - lr * options_.weight_decay);
  params.values.add_(params.grads, -lr * grad_scale).add_(momentum_, -lr * options_.momentum);
}

}  // namespace syncopate::optim
