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
      runner_(replica_, engine_, strategy_, Mesh::of_replicas(group_)) {
  strategy_.start(replica_);
}

double Session::step(std::span<const tensor::Batch> micro, double lr) {
  last_ = runner_.step(
      micro, {.step = static_cast<int64_t>(steps_), .lr = lr, .noise_key = mix(steps_)});
  ++steps_;
  return last_.count > 0 ? last_.sum / last_.count : 0;
}

}  // namespace syncopate::parallel
