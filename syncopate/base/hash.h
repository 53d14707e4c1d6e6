#pragma once

#include <cstdint>
#include <string_view>

namespace syncopate {

/// A 64-bit checksum: finds damage, does not resist an attacker. `seed` chains pieces.
uint64_t checksum(std::string_view bytes, uint64_t seed = 0);

}  // namespace syncopate
