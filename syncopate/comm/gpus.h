#pragma once

#include <c10/core/Device.h>

#include <chrono>

#include "syncopate/comm/open.h"

namespace syncopate::comm {

/// Lets the ranks exchange what lies on their GPUs without the host, where they can: within the memory of one
/// GPU that all share, or by NCCL where each has a GPU of its own. `device` is where this rank computes.
/// Nothing changes for a backend other than auto and nccl, where all compute on CPUs, where some share a GPU
/// and others do not, and for ranks that are threads. Collective. Throws ConfigError where some ranks have a
/// GPU and others none, and for the backend nccl where it cannot be used.
void use_gpus(Membership& membership, c10::Device device, const std::string& backend,
              std::chrono::milliseconds timeout);

}  // namespace syncopate::comm
