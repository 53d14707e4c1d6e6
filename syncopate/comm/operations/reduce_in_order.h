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

/// Of tables with rows of `width`: for each of `numbers` (int64) between `from` and `to`, the sum of that row
/// over the ranks whose `in_use` says so, in the order of the ranks, into `total`. Adding the others' zeros
/// would give the same.
void sum_used_rows(const std::vector<const void*>& tables, const std::vector<const void*>& in_use,
                   const at::Tensor& numbers, int64_t from, int64_t to, int64_t width, void* total);

}  // namespace syncopate::comm
