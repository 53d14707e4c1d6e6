#pragma once

#include <cstdint>
#include <optional>

#include "syncopate/parallel/free_running.h"
#include "syncopate/parallel/server_client.h"

namespace syncopate::parallel {

/// The servers hold the parameters and the optimizer. A worker computes a gradient, clips it, pushes it and
/// gets the new parameters, without waiting for other workers further than the servers' bound asks for
/// (Dean et al., 2012; Ho et al., 2013).
class ParameterServer : public FreeRunning {
 public:
  /// See ServerClient.
  ParameterServer(comm::Group& world, comm::Group& workers, bool whole_tensors)
      : client_(world, workers, whole_tensors) {}

  void start(Replica& replica) override { client_.start(replica); }
  void open(Replica&, int64_t from, int64_t to) override { client_.open(from, to); }
  std::optional<int64_t> ticket() override { return client_.ticket(); }
  void step(Replica& replica) override;
  void close(Replica& replica) override { client_.close(replica); }
  ServerClient& client() { return client_; }

 private:
  ServerClient client_;
};

/// The same servers in lockstep: they sum the workers' gradients in the order of ranks and make one update,
/// so that this is an all-reduce by other means.
class LockstepServer : public Strategy {
 public:
  LockstepServer(comm::Group& world, comm::Group& workers, bool whole_tensors)
      : client_(world, workers, whole_tensors) {}

  void start(Replica& replica) override { client_.start(replica); }
  void step(Replica& replica) override;
  ServerClient& client() { return client_; }

 private:
  ServerClient client_;
};

}  // namespace syncopate::parallel
