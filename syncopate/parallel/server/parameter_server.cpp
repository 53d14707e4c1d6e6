#include "syncopate/parallel/server/parameter_server.h"

#include <ATen/ATen.h>

#include "syncopate/base/clock.h"

namespace syncopate::parallel {

std::vector<StateTensor> ParameterServer::Saved::state(comm::Group& workers, ServerClient& client) {
  if (workers.rank() != 0) return {};
  state_ = client.save();
  std::vector<StateTensor> tensors{
      {.name = "server.steps", .tensor = state_.steps, .scope = Scope::kCommon},
      {.name = "server.staleness", .tensor = state_.staleness, .when_resized = "staleness is counted anew"}};
  for (const auto& [name, tensor] : state_.tensors) {
    tensors.push_back({.name = "server." + name,
                       .tensor = tensor,
                       .scope = Scope::kCommon,
                       .laid_at = 0,
                       .when_resized = "the server's optimizer was kept"});
  }
  return tensors;
}

void ParameterServer::Saved::resumed(comm::Group& workers, ServerClient& client, Replica& replica) {
  if (workers.rank() == 0) client.restore(state_, replica);
  workers.barrier();
}

void ParameterServer::open(Replica&, int64_t first, int64_t last) {
  first_ = first;
  client_.open(first, last);
}

Update ParameterServer::step(Replica& replica, const StepContext& context) {
  const Stopwatch watch;
  auto [update, scale, waited] = replica.scaled(context.count);
  update.apply_seconds = watch.seconds();
  if (scale) {
    client_.push(replica, context, *scale);
  } else {
    client_.pull(replica);
  }
  return update;
}

int64_t ParameterServer::close(Replica& replica) { return client_.close(replica) - first_; }

std::vector<std::vector<int64_t>> ParameterServer::staleness() {
  StalenessHistogram histogram(workers_.size());
  if (workers_.rank() == 0) histogram = client_.staleness();
  workers_.broadcast(histogram.tensor(), 0).wait();
  return histogram.counts();
}

Update LockstepServer::step(Replica& replica, const StepContext& context) {
  const Reply reply =
      client_.push(replica, context, replica.mean_scale(context.count), replica.loss_scale != nullptr);
  return replica.judge(reply.norm);
}

}  // namespace syncopate::parallel
