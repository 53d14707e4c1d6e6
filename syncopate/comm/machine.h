#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// Alike in all processes of this machine, and on no other.
std::string machine_id();

/// The ranks of a group that run on this rank's machine.
struct Neighbours {
  int ranks = 0;                 ///< this one included
  std::vector<pid_t> processes;  ///< theirs, each once: ranks may be threads
};
/// Collective.
Neighbours neighbours(Group& group);
/// How many they are. Collective.
inline int ranks_on_this_machine(Group& group) { return neighbours(group).ranks; }

}  // namespace syncopate::comm
