#pragma once

#include <string>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// Text from `root` to every rank. Collective.
std::string broadcast_text(Group& group, const std::string& text, int root);

/// How many ranks of the group run on this rank's machine. Collective.
int ranks_on_this_machine(Group& group);

}  // namespace syncopate::comm
