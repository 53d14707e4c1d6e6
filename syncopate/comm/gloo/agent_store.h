#pragma once

#include <chrono>
#include <memory>

#include "syncopate/lifeline/rendezvous.h"

namespace syncopate::comm {

/// A client of the c10d store that torchrun's agent runs at MASTER_PORT.
std::unique_ptr<lifeline::AgentStore> open_agent_store(const lifeline::Address& address,
                                                       std::chrono::milliseconds timeout);

}  // namespace syncopate::comm
