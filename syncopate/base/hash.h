#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace syncopate {

/// A 64-bit checksum: finds damage, does not resist an attacker. `seed` chains pieces.
uint64_t checksum(std::string_view bytes, uint64_t seed = 0);

/// How a checksum is written: 16 digits.
std::string hexadecimal(uint64_t number);

/// The same of bytes that come in pieces, cut anywhere. A copy is the state so far.
class Checksum {
 public:
  explicit Checksum(uint64_t seed = 0);
  void add(std::string_view bytes);
  uint64_t value() const;

 private:
  void add_whole(std::string_view bytes);  ///< a multiple of 32 bytes

  uint64_t lanes_[4];
  char rest_[32] = {};  ///< the last size_ % 32 bytes
  size_t size_ = 0;     ///< of all so far
};

/// The same of an array of whole numbers, or of structs of them.
template <typename Plain>
uint64_t checksum_of(const std::vector<Plain>& values, uint64_t seed = 0) {
  static_assert(std::has_unique_object_representations_v<Plain>, "no bytes between members");
  return checksum({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Plain)}, seed);
}

}  // namespace syncopate
