#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "syncopate/comm/open.h"

namespace syncopate::run {

using Environment = std::map<std::string, std::string>;

/// The flags that say who this process is.
struct WorldFlags {
  std::optional<int> workers{};     ///< --workers
  std::optional<int> rank{};        ///< --rank
  std::optional<int> world_size{};  ///< --world-size
  std::string master{};             ///< --master HOST:PORT
  int servers = 0;                  ///< processes that the strategy has beside the workers
  std::string token{};              ///< of --token-file; empty: SYNCOPATE_TOKEN's
  bool insecure = false;            ///< --insecure: no token, though other machines can reach the run
};

/// Who this process is among the workers of a run.
struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< among the workers of this machine, or host of an emulated network
  int local_size = 1;
  std::string launcher = "none";         ///< "none", "syncopate", "torchrun", "mpirun", "slurm" or "manual"
  lifeline::RendezvousPoint rendezvous;  ///< of no account when size is 1
  bool insecure = false;                 ///< may listen beyond loopback without a token
  std::string job;                       ///< the launcher's name for this job; empty: it has none

  bool is_worker() const { return launcher != "none"; }
};

/// From flags and a launcher's environment; pure. Our own launcher's variables come first (its workers get
/// the same flags as it), then --rank, then torchrun, mpirun, and Slurm inside a step. A launcher that
/// started several processes has started the workers: another number for --workers is refused. Throws
/// ConfigError on what does not fit.
World find_world(const WorldFlags& flags, const Environment& environment);

Environment environment_of_process();

/// Joins the run: opens the group and the lifeline. `claims` must be alike on all ranks; `note` is told what
/// a user should know. Throws ConfigError where other machines could join unasked.
comm::Membership join(const World& world, const std::string& backend, std::chrono::milliseconds timeout,
                      const lifeline::Claims& claims = {},
                      const std::function<void(const std::string&)>& note = {});

/// Throws ConfigError where processes that our own launcher starts cannot use the backend: over MPI only
/// those can talk that MPI's launcher has started, and NCCL may not be built in.
void require_backend(const std::string& backend, int64_t processes);

/// The first host of Slurm's list: "node[07-09,12],other" -> "node07".
std::string first_host(const std::string& node_list);

}  // namespace syncopate::run
