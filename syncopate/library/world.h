#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "syncopate/base/error.h"
#include "syncopate/comm/metering/metered.h"
#include "syncopate/comm/open.h"

namespace syncopate {

/// The processes that train together, seen from this one.
class World {
 public:
  /// Ranks that met otherwise: threads of one process (comm/inproc.h), or this one alone.
  explicit World(std::unique_ptr<comm::Group> group);
  /// Ranks that joined a run; `backend` and `timeout` as they asked for.
  explicit World(comm::Membership membership, std::string backend = "auto",
                 std::chrono::milliseconds timeout = std::chrono::milliseconds(60000));

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Among the ranks of this machine. Where that has several GPUs, they take turns in this order.
  int local_rank() const { return local_rank_; }
  comm::Metered& group() { return *group_; }

  /// What this rank does, for the sentence that others read if it dies.
  void status(int64_t step, const std::string& phase) { membership_.status(step, phase); }
  /// This rank's tensors are on that device from here on: where all are on GPUs, they no longer travel
  /// through the host where they need not. Collective; a Session calls it. Throws ConfigError, on every rank,
  /// where some are on GPUs and others on CPUs, or on another GPU than before.
  void compute_on(c10::Device device);
  /// A clean end: the last call. Who goes without it has died, to the others. See Session::leave.
  void leave();
  /// Throws CommError with the cause of `error`: whoever notices a failure first may be its victim.
  [[noreturn]] void rethrow(const CommError& error) const;

 private:
  comm::Membership membership_;  ///< its group is the one below
  std::unique_ptr<comm::Metered> group_;
  std::string backend_ = "auto";
  std::chrono::milliseconds timeout_{};
  std::optional<c10::Device> gpu_;  ///< whose memory ranks exchange in, once a session has said so
  int rank_, size_, local_rank_;
};

struct JoinOptions {
  std::chrono::milliseconds timeout{60000};  ///< of every operation, and of finding each other
  /// gloo, shm, shm+gloo, mpi, nccl, or auto: shm where all ranks are on one host, shm+gloo where some share
  /// one; between GPUs their memory or nccl.
  std::string backend = "auto";
  int threads = 0;  ///< to compute with; 0: all cores, or one where ranks share this machine
  /// A secret that all ranks know, for a run that other machines can reach; empty: SYNCOPATE_TOKEN's.
  std::string token{};
  bool insecure = false;  ///< let whoever comes join such a run without one
};

/// Joins the run that a launcher (torchrun, mpirun, srun) started this process for; alone where none did.
/// With main's `argv`, call it first: where this CPU needs other settings than the numerical libraries have
/// chosen, the program starts again in place, once. Throws ConfigError and CommError.
World join(const JoinOptions& options = {});
World join(char** argv, const JoinOptions& options = {});

}  // namespace syncopate
