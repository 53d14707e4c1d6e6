#pragma once

#include <string>
#include <vector>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// Every rank's text at `root`, by rank; elsewhere nothing. Collective.
std::vector<std::string> gather_text(Group& group, const std::string& text, int root);

}  // namespace syncopate::comm
