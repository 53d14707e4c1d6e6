#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "syncopate/parallel/replica.h"
#include "syncopate/parallel/server/shards.h"

namespace syncopate::parallel {

/// The elements of a flat gradient outside of which it is zero, as ranges in order: of embedding tables only
/// the rows that the step's batches read (`rows`).
std::vector<Slice> gradient_runs(const Replica& replica, std::span<const tensor::RowUse> rows);

/// The part of the runs that lies within `shard`, counted from its beginning.
std::vector<Slice> runs_within(const std::vector<Slice>& runs, const Slice& shard);

int64_t elements_of(const std::vector<Slice>& runs);
at::Tensor pack(const at::Tensor& flat, const std::vector<Slice>& runs);  ///< on the host
/// The way back; the rest becomes zero.
void unpack(const at::Tensor& packed, const std::vector<Slice>& runs, const at::Tensor& flat);

at::Tensor to_tensor(const std::vector<Slice>& runs);  ///< int64 [runs, 2]
std::vector<Slice> runs_from(const at::Tensor& tensor);

}  // namespace syncopate::parallel
