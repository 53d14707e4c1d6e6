#include "syncopate/parallel/session.h"

#include "syncopate/base/rng.h"
#include "syncopate/parallel/local_engine.h"
#include "syncopate/parallel/totals.h"

namespace syncopate::parallel {

Session::Session(nn::Model& model, comm::Group& group, Strategy& strategy,
                 const optim::OptimizerOptions& options)
    : group_(group),
      strategy_(strategy),
      params_(model.parameters()),
      optimizer_(optim::make_optimizer(options, params_)),
      replica_{.model = model, .params = params_, .optimizer = *optimizer_} {
  strategy_.start(replica_);
}

double Session::step(std::span<const tensor::Batch> micro, double lr) {
  replica_.lr = lr;
  Totals totals(group_);
  LocalEngine engine;
  engine.run(replica_, micro, mix_key(steps_++, group_.rank()),
             {.phase = {}, .before_backward = [&](const LocalLoss& so_far, bool last) {
                if (last) totals.start(so_far, false);
                strategy_.before_backward(replica_, last);
              }});
  totals.wait();
  replica_.count = totals.count();
  strategy_.step(replica_);
  return totals.loss_sum() / totals.count();
}

}  // namespace syncopate::parallel
