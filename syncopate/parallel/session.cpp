#include "syncopate/parallel/session.h"

#include "syncopate/base/rng.h"

namespace syncopate::parallel {

Session::Session(nn::Model& model, comm::Group& group, Strategy& strategy,
                 const optim::OptimizerOptions& options)
    : group_(group),
      strategy_(strategy),
      params_(model.parameters()),
      optimizer_(optim::make_optimizer(options, params_)),
      replica_{.model = model, .params = params_, .optimizer = *optimizer_},
      lockstep_(replica_, engine_, strategy_, group_) {
  strategy_.start(replica_);
}

double Session::step(std::span<const tensor::Batch> micro, double lr) {
  replica_.lr = lr;
  replica_.step = static_cast<int64_t>(steps_);
  const auto outcome = lockstep_.step(micro, mix_key(steps_++, group_.rank()), {});
  return outcome.count > 0 ? outcome.sum / outcome.count : 0;
}

}  // namespace syncopate::parallel
