#pragma once

#include <chrono>
#include <memory>

#include "syncopate/lifeline/rendezvous.h"

namespace syncopate::comm {

/// torchrun's agent listens at MASTER_PORT with a store of c10d's own: a client of it.
std::unique_ptr<lifeline::AgentStore> open_agent_store(const lifeline::Address& address,
                                                       std::chrono::milliseconds timeout);

}  // namespace syncopate::comm
