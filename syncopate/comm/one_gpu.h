#pragma once

#include <memory>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// For ranks that may share a GPU: they exchange what lies there within its memory. Sums of fp32 tensors are
/// made in the order of ranks, each rank adding up a slice for all. Where ranks have different GPUs, and for
/// everything else, `inner` carries it, which also says where the tensors are. An operation on the GPU is
/// done when the call returns. Groups split from it do the same.
///
/// `here`: this rank computes on a GPU. Unless all do, in programs that can, `inner` itself comes back.
/// Collective.
std::unique_ptr<Group> on_one_gpu(std::unique_ptr<Group> inner, bool here);

}  // namespace syncopate::comm
