#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "syncopate/comm/group.h"
#include "syncopate/lifeline/rendezvous.h"

namespace syncopate::comm {

struct CommOptions {
  int rank = 0;
  int size = 1;
  lifeline::RendezvousPoint rendezvous;      ///< ignored when size is 1
  std::chrono::milliseconds timeout{20000};  ///< of every operation, and of finding each other
  /// gloo, shm, shm+gloo, mpi, or auto: shm where all ranks are on one host, shm+gloo where some share one.
  /// nccl is auto here, and use_gpus does the rest.
  std::string backend = "auto";
  std::string interface_address;                   ///< "": the local address that reaches the rendezvous
  lifeline::Claims claims{};                       ///< what must be alike on all ranks
  std::function<void(const std::string&)> note{};  ///< at rank 0: somebody was turned away. May be empty
  std::string host{};                              ///< on which this rank is; "": as host_id() says
};

/// Ranks that exchange within the memory of a GPU that all share. Not a name to ask for: auto finds it.
inline constexpr const char* kOneGpuBackend = "one-gpu";

/// A rank's membership in a run. Call leave() for a clean shutdown: destroying it without looks like a death
/// to the other ranks.
struct Membership {
  std::unique_ptr<lifeline::LifelineServer> server;  ///< null if another process serves
  std::shared_ptr<lifeline::Lifeline> lifeline;      ///< null when alone
  std::unique_ptr<Group> group;
  /// What the group is: gloo, shm, shm+gloo, mpi, nccl or kOneGpuBackend; none when alone.
  std::string backend = "none";

  void status(int64_t step, std::string_view phase);    ///< no-op when alone
  void fail(std::string_view sentence, int exit_code);  ///< no-op when alone
  void leave();                                         ///< says goodbye; the group is gone afterwards
};

/// Joins a run: the group of one when size is 1, else Gloo, shared memory, both in two levels, or MPI.
/// Tensors of a GPU pass the host in all of them; use_gpus puts a faster way on top. Throws ConfigError for
/// shared memory among several hosts, for two levels where there is only one, and for MPI where it is not
/// built in or no launcher of MPI's has started the ranks.
Membership open(const CommOptions& options);

}  // namespace syncopate::comm
