#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "syncopate/comm/open.h"

namespace syncopate::run {

using Environment = std::map<std::string, std::string>;

/// The flags that say who this process is.
struct WorldFlags {
  std::optional<int> workers;     ///< --workers
  std::optional<int> rank;        ///< --rank
  std::optional<int> world_size;  ///< --world-size
  std::string master;             ///< --master HOST:PORT
};

/// Who this process is among the workers of a run.
struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< among the workers of this machine
  int local_size = 1;
  std::string launcher = "none";         ///< "none", "syncopate", "torchrun", "mpirun", "slurm" or "manual"
  lifeline::RendezvousPoint rendezvous;  ///< of no account when size is 1

  bool is_worker() const { return launcher != "none"; }
};

/// From flags and a launcher's environment; pure. Our own launcher's variables come first (its workers get
/// the same flags as it), then --rank, then --workers (which wins over an inherited environment:
/// `is_worker()` is false and the caller launches), then torchrun, mpirun, and Slurm inside a step. Throws
/// ConfigError on what does not fit.
World find_world(const WorldFlags& flags, const Environment& environment);

Environment environment_of_process();

/// Joins the run: opens the group and the lifeline.
comm::Membership join(const World& world, std::chrono::milliseconds timeout);

/// The first host of Slurm's list: "node[07-09,12],other" -> "node07".
std::string first_host(const std::string& node_list);

}  // namespace syncopate::run
