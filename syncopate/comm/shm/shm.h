#pragma once

#include <chrono>
#include <memory>

#include "syncopate/comm/group.h"
#include "syncopate/comm/operations/waits.h"
#include "syncopate/comm/shm/region.h"

namespace syncopate::comm {

/// A group over memory that the ranks of the lifeline's run share: all on one host. Sums go in rank order, so
/// they have the in-process group's bits at any size. A failure that the lifeline reports ends every wait at
/// once with its message. Each operation may take `timeout`, counted from the wait. Collective. Throws
/// ConfigError where the ranks cannot share memory.
std::unique_ptr<Group> open_shm(std::shared_ptr<lifeline::Lifeline> lifeline,
                                std::chrono::milliseconds timeout);

/// The same of those ranks of the run that meet at a place; it waits as `waits` says.
std::unique_ptr<Group> open_shm(std::shared_ptr<Waits> waits, ShmPlace place);

}  // namespace syncopate::comm
