#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// A group inside one process: each Group belongs to a thread of its own. Sums go in rank order, so that
/// exchanging a tensor in pieces gives the same bits as exchanging it whole. Calls are matched by their
/// order; ranks that call different things get a CommError that says so. A Group that is destroyed counts as
/// a rank that died.
std::vector<std::unique_ptr<Group>> open_in_process(int size, std::chrono::milliseconds timeout);

/// The group of one: no sockets, no waiting.
std::unique_ptr<Group> open_alone();

}  // namespace syncopate::comm
