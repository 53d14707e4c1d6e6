#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>

#include "syncopate/comm/group.h"
#include "syncopate/lifeline/lifeline.h"

namespace syncopate::comm {

/// Whether this program has NCCL built in.
bool has_nccl();
/// Throws ConfigError where it has not.
void require_nccl();

/// For ranks that have a GPU each, all different: what lies on `device` is exchanged by NCCL, everything else
/// by `inner`, whose ranks are the lifeline's. So are messages from one rank to another, since NCCL knows
/// neither tags nor senders that are not named. A failure that the lifeline reports, and one that NCCL finds
/// by itself, ends every wait with a sentence. Groups split from it do the same. Collective. Throws CommError
/// when the ranks do not find each other in time.
std::unique_ptr<Group> over_nccl(std::unique_ptr<Group> inner, std::shared_ptr<lifeline::Lifeline> lifeline,
                                 std::chrono::milliseconds timeout, c10::Device device);

}  // namespace syncopate::comm
