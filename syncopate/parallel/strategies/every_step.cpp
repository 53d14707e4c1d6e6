#include "syncopate/parallel/strategies/every_step.h"

#include <utility>

#include "syncopate/comm/metering/payload.h"
#include "syncopate/parallel/shared_update.h"

namespace syncopate::parallel {

void take_parameters_of_rank_zero(Replica& replica, comm::Group& group) {
  const comm::Carrying carrying(comm::Payload::kParameters);
  group.broadcast(replica.params.values, 0).wait();
}

void keep_gradients_in(comm::Group& group, tensor::FlatParams& params) {
  if (group.size() > 1 && params.grads.is_cpu())
    params.move_grads(group.room(params.size(), params.grads.scalar_type()));
}

Piece piece_of(const tensor::FlatParams& params, int64_t offset, int64_t size) {
  Piece piece{params.grads.narrow(0, offset, size), offset};
  if (params.sums.defined()) piece.into = params.sums.narrow(0, offset, size);
  return piece;
}

EveryStep::EveryStep(comm::Group& group, std::unique_ptr<Averager> averager, Options options)
    : group_(group), averager_(std::move(averager)), options_(options) {}

void EveryStep::start(Replica& replica) {
  take_parameters_of_rank_zero(replica, group_);
  if (averager_->sums_into_common()) SharedUpdate::begin(group_, replica);
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
      averager_->start(piece_of(params, 0, params.size())).wait();
    } else {
      for (const auto& entry : params.entries())
        averager_->start(piece_of(params, entry.offset, entry.size)).wait();
    }
  }
  Update update = replica.apply(context);
  // Other ranks' rows are in the gradient, too.
  if (group_.size() > 1 && !params.sums.defined()) update.touched.emplace();
  return update;
}

}  // namespace syncopate::parallel
