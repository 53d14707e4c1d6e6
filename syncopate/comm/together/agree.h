#pragma once

#include <string>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// Every rank has described itself in lines of `mine` and found `problem` with itself, or none (empty).
/// Throws the same ConfigError on every rank when some rank has a problem or differs from rank 0.
/// Collective.
void agree(Group& group, const std::string& mine, const std::string& problem);

}  // namespace syncopate::comm
