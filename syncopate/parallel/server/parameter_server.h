#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/parallel/server/server_client.h"
#include "syncopate/parallel/strategies/free_running.h"

namespace syncopate::parallel {

/// The servers hold the parameters and the optimizer. A worker computes a gradient, clips it, pushes it and
/// gets the new parameters, and waits for other workers no further than the servers' bound asks for
/// (Dean et al., 2012; Ho et al., 2013).
class ParameterServer : public FreeRunning {
 public:
  /// See ServerClient.
  ParameterServer(comm::Group& world, comm::Group& workers, ServerClient::Options options)
      : workers_(workers), client_(world, workers, options) {}

  void start(Replica& replica) override { client_.start(replica); }
  void open(Replica& replica, int64_t first, int64_t last) override;
  std::optional<int64_t> take(bool stop) override { return client_.take(stop); }
  Update step(Replica& replica, const StepContext& context) override;
  int64_t close(Replica& replica) override;
  std::vector<std::vector<int64_t>> staleness() override;
  Settled settle(Replica&) override { return {.model = "server"}; }
  std::vector<StateTensor> state() override { return saved_.state(workers_, client_); }
  void resumed(Replica& replica) override { saved_.resumed(workers_, client_, replica); }
  void leave() override { client_.leave(); }

  /// What rank 0's checkpoint holds of the servers.
  class Saved {
   public:
    std::vector<StateTensor> state(comm::Group& workers, ServerClient& client);
    void resumed(comm::Group& workers, ServerClient& client, Replica& replica);

   private:
    ServerState state_;  ///< as last asked for: what a run that resumes writes into
  };

 private:
  comm::Group& workers_;
  ServerClient client_;
  Saved saved_;
  int64_t first_ = 0;
};

/// The same servers in lockstep: they sum the workers' gradients in the order of ranks and make one update,
/// so that this is an all-reduce by other means. They also clip, since they alone have the sum.
class LockstepServer : public Strategy {
 public:
  LockstepServer(comm::Group& world, comm::Group& workers, ServerClient::Options options)
      : workers_(workers), client_(world, workers, options) {}

  void start(Replica& replica) override { client_.start(replica); }
  Update step(Replica& replica, const StepContext& context) override;
  Settled settle(Replica&) override { return {.model = "server"}; }
  std::vector<StateTensor> state() override { return saved_.state(workers_, client_); }
  void resumed(Replica& replica) override { saved_.resumed(workers_, client_, replica); }
  void leave() override { client_.leave(); }

 private:
  comm::Group& workers_;
  ServerClient client_;
  ParameterServer::Saved saved_;
};

}  // namespace syncopate::parallel
