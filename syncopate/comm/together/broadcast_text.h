#pragma once

#include <string>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// Text from `root` to every rank. Collective.
std::string broadcast_text(Group& group, const std::string& text, int root);

}  // namespace syncopate::comm
