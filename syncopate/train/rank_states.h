#pragma once

#include <filesystem>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/tensor/batch.h"

// A checkpoint is one file, written and read by rank 0; these bring it what other ranks have of their own.
namespace syncopate::train {

/// Every rank's tensors at rank 0 (nothing elsewhere), named "rank2.NAME"; ranks may differ in what they
/// have. Collective.
std::vector<tensor::NamedTensor> gather_states(comm::Group& group,
                                               const std::vector<tensor::NamedTensor>& mine);

/// The way back: `saved` is rank 0's alone; fills `mine` in place on every rank. Throws DataError at
/// rank 0 when the checkpoint lacks some of them. Collective.
void scatter_states(comm::Group& group, const std::vector<tensor::NamedTensor>& saved,
                    const std::vector<tensor::NamedTensor>& mine, const std::filesystem::path& path);

}  // namespace syncopate::train
