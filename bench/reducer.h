#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "syncopate/parallel/strategy.h"

namespace syncopate::bench {

/// PyTorch's own DDP engine, c10d::Reducer, driven from C++: 25 MiB buckets (the first 1 MiB), overlapped.
/// Where the libtorch at hand has another interface for it (2.x), null.
std::unique_ptr<parallel::Strategy> make_reducer(int rank, int size, const std::string& store_file);

}  // namespace syncopate::bench
