#pragma once

#include <vector>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// The ranks of a group that gave the same color, ordered by key, then rank: those of one that splits from
/// it. Collective.
std::vector<int> members(Group& group, int color, int key);

/// This rank's place among them.
int place_among(const std::vector<int>& members, int rank);

}  // namespace syncopate::comm
