#pragma once

#include <memory>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// For ranks that share a GPU: they exchange what lies there within its memory. Sums of fp32 tensors are made
/// in the order of ranks, each rank adding up a slice for all. Everything else, and all where a driver or a
/// container forbids the sharing, is carried by `inner`, which also says where the tensors are. An operation
/// on the GPU is done when the call returns. Groups split from it do the same. For programs with kernels of
/// our own (`gpu::built`).
std::unique_ptr<Group> on_one_gpu(std::unique_ptr<Group> inner);

}  // namespace syncopate::comm
