#pragma once

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// How many ranks of the group run on this rank's machine. Collective.
int ranks_on_this_machine(Group& group);

}  // namespace syncopate::comm
