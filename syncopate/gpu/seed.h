#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <span>

namespace syncopate::gpu {

/// Makes what libtorch draws next on `device` a function of `key` and the first of the examples.
void seed(c10::Device device, uint64_t key, std::span<const int64_t> examples);

}  // namespace syncopate::gpu
