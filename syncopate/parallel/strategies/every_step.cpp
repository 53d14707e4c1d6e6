#include "syncopate/parallel/strategies/every_step.h"

#include <utility>

#include "syncopate/comm/payload.h"

namespace syncopate::parallel {

void take_parameters_of_rank_zero(Replica& replica, comm::Group& group) {
  const comm::Carrying carrying(comm::Payload::kParameters);
  group.broadcast(replica.params.values, 0).wait();
}

void keep_gradients_in(comm::Group& group, tensor::FlatParams& params) {
  if (group.size() > 1 && params.grads.is_cpu())
    params.move_grads(group.room(params.size(), params.grads.scalar_type()));
}

EveryStep::EveryStep(comm::Group& group, std::unique_ptr<Averager> averager, Options options)
    : group_(group), averager_(std::move(averager)), options_(options) {}

void EveryStep::start(Replica& replica) {
  take_parameters_of_rank_zero(replica, group_);
  if (averager_->sums_in_place()) keep_gradients_in(group_, replica.params);
  averager_->attach(replica);
}

void EveryStep::before_backward(Replica&, const StepContext& context, bool last_micro) {
  if (last_micro) averager_->begin(context.step);
}

Update EveryStep::step(Replica& replica, const StepContext& context) {
  tensor::FlatParams& params = replica.params;
  {
    const comm::Carrying carrying(comm::Payload::kGradients);
    if (options_.whole) {
      averager_->start({params.grads, 0}).wait();
    } else {
      for (const auto& entry : params.entries())
        averager_->start({params.grad_of(entry), entry.offset}).wait();
    }
  }
  Update update = replica.apply(context);
  if (group_.size() > 1) update.touched.emplace();  // other ranks' rows are in the gradient, too
  return update;
}

}  // namespace syncopate::parallel
