#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// Alike in all processes of this machine, and on no other: whose cores they share.
std::string machine_id();
/// The same, but hosts of an emulated network (SYNCOPATE_LAB_HOST) differ, though they share a machine:
/// memory is never shared across their walls.
std::string host_id();

/// The ranks of a group that run on this rank's machine.
struct Neighbours {
  int ranks = 0;                 ///< this one included
  int before = 0;                ///< of them, with a lower rank than this one's
  std::vector<pid_t> processes;  ///< theirs, each once: ranks may be threads
};
/// Collective.
Neighbours neighbours(Group& group);
/// Whether all ranks are on one host, by host_id(). Collective.
bool on_one_host(Group& group);
/// How many they are. Collective.
inline int ranks_on_this_machine(Group& group) { return neighbours(group).ranks; }

}  // namespace syncopate::comm
