#pragma once

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// Sums a small tensor over the ranks of a group, in place and in rank order, by sending it to every other
/// rank: one trip over the slowest link, where a ring makes 2 (n - 1). One at a time for each tag.
Pending sum_directly(Group& group, at::Tensor tensor, int tag);

}  // namespace syncopate::comm
