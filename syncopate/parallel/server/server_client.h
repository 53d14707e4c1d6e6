#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/parallel/replica.h"
#include "syncopate/parallel/server/server_link.h"
#include "syncopate/parallel/server/shards.h"
#include "syncopate/parallel/staleness_histogram.h"

namespace syncopate::parallel {

/// What the servers hold beside the parameters, put together: as if one server had it all, so that a
/// checkpoint does not depend on their number.
struct ServerState {
  std::vector<tensor::NamedTensor> tensors;  ///< the optimizer's, laid out as the parameters
  at::Tensor steps;                          ///< int64 [1]: the optimizer's
  at::Tensor staleness;                      ///< StalenessHistogram's
};

/// A worker's side of the servers. Used by the training thread alone.
class ServerClient {
 public:
  struct Options {
    bool whole_tensors = false;  ///< as the optimizer needs it; the servers know as well
    bool sparse_rows = true;     ///< push only those rows of embedding tables that were read
  };
  /// `world`: workers, then servers; `workers`: the former alone. Both must outlive this. Collective over
  /// `world`: the servers are in `serve`.
  ServerClient(comm::Group& world, comm::Group& workers, Options options);

  /// Servers and workers take rank 0's parameters. Collective.
  void start(Replica& replica);
  /// Sends the gradient, to be applied times `scale`, and brings the parameters up to date. One exchange.
  Reply push(Replica& replica, const StepContext& context, double scale, bool wants_norm = false);
  void pull(Replica& replica);

  void open(int64_t from, int64_t to);  ///< collective over the workers
  std::optional<int64_t> take(bool stop);
  /// Every worker's pushes have been applied and every replica holds the result; returns the first ticket
  /// that was not taken. Collective over the workers.
  int64_t close(Replica& replica);

  StalenessHistogram staleness();                            ///< as the first server sees it; rank 0 alone
  ServerState save();                                        ///< rank 0 alone
  void restore(const ServerState& state, Replica& replica);  ///< and the parameters; rank 0 alone
  void leave();                                              ///< the last call: the servers may go

 private:
  void ask(const Request& request);  ///< every server; waits for the answers
  int64_t ask_for_ticket(Ask what);  ///< the first server, which has them
  void send_values(Replica& replica);
  void send_gradient(Replica& replica, const StepContext& context, Request request);
  void receive_values(Replica& replica);

  comm::Group& world_;
  comm::Group& workers_;
  Options options_;
  std::vector<ServerLink> links_;
  std::vector<Slice> shards_;
  at::ScalarType state_type_ = at::kFloat;  ///< of the optimizer's arrays
  int64_t spare_ = -1;                      ///< a ticket that came with an answer
  bool has_spare_ = false;
  at::Tensor host_;  ///< where arrays of another device pass through
};

}  // namespace syncopate::parallel
