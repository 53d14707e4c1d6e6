#include "syncopate/parallel/server/parameter_server.h"

#include <ATen/ATen.h>

namespace syncopate::parallel {

std::vector<tensor::NamedTensor> ParameterServer::Saved::state(comm::Group& workers, ServerClient& client) {
  if (workers.rank() != 0) return {};
  state_ = client.save();
  std::vector<tensor::NamedTensor> tensors{{"server.steps", state_.steps},
                                           {"server.staleness", state_.staleness}};
  for (const auto& [name, tensor] : state_.tensors) tensors.push_back({"server." + name, tensor});
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

void ParameterServer::step(Replica& replica) {
  if (const auto scale = replica.update_scale()) {
    client_.push(replica, replica.lr, *scale);
  } else {
    client_.pull(replica);
  }
}

int64_t ParameterServer::close(Replica& replica) { return client_.close(replica) - first_; }

std::vector<std::vector<int64_t>> ParameterServer::staleness() {
  StalenessHistogram pace(workers_.size());
  if (workers_.rank() == 0) pace = client_.pace();
  workers_.broadcast(pace.tensor(), 0).wait();
  return pace.counts();
}

void LockstepServer::step(Replica& replica) {
  const Reply reply = client_.push(replica, replica.lr, replica.mean_scale(), replica.loss_scale != nullptr);
  replica.accept(reply.norm);
}

}  // namespace syncopate::parallel
