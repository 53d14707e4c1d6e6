#pragma once

#include <cstdint>

namespace syncopate::gpu {

/// The formats of codec/, byte for byte.
enum class Format { kFp32, kFp16, kBf16, kInt8, kInt4, kSign, kTopK, kRandomK };

struct Packing {
  Format format = Format::kFp32;
  int64_t kept = 0;  ///< top-k, random-k: how many elements travel
  uint64_t key = 0;  ///< random-k: which ones
};

}  // namespace syncopate::gpu
