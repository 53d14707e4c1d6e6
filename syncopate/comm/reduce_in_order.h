#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// Adds the next rank's numbers to what the ranks before it came to, or takes the larger or smaller ones.
void reduce_next(at::Tensor& total, const at::Tensor& next, Op op);

/// `count` elements of every rank, reduced in the order of the ranks with the in-process group's roundings,
/// into each of `outs`, of which some may be parts.
void reduce_in_order(const std::vector<const void*>& parts, const std::vector<void*>& outs, int64_t count,
                     at::ScalarType type, Op op);

}  // namespace syncopate::comm
