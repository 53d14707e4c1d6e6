#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// `bytes` of a GPU's memory that every rank of the group sees, by CUDA's inter-process handles; all ranks
/// are on one machine and use the same GPU. Undefined on every rank if any rank cannot map it (another
/// GPU, a driver or container that forbids it). The memory is given back when rank 0's process ends: a peer
/// may hold it until then. Collective.
at::Tensor share_device_memory(Group& group, c10::Device device, int64_t bytes);

}  // namespace syncopate::comm
