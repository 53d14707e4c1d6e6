#include "syncopate/parallel/parameter_server.h"

#include "syncopate/optim/clip.h"

namespace syncopate::parallel {

void ParameterServer::step(Replica& replica) {
  if (const auto scale = replica.update_scale()) {
    client_.push(replica, replica.lr, *scale);
  } else {
    client_.pull(replica);
  }
}

void LockstepServer::step(Replica& replica) {
  const Reply reply = client_.push(replica, replica.lr, replica.mean_scale(), replica.loss_scale != nullptr);
  replica.accept(reply.norm);
}

}  // namespace syncopate::parallel
