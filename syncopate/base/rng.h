#pragma once

#include <cstdint>
#include <vector>

namespace syncopate {

/// SplitMix64's finalizer: turns any two different numbers into unrelated ones.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// Folds several numbers into one key: the same parts always give the same key.
template <typename... Parts>
constexpr uint64_t mix_key(uint64_t first, Parts... rest) {
  uint64_t key = mix(first);
  ((key = mix(key ^ static_cast<uint64_t>(rest))), ...);
  return key;
}

/// A small random stream, the same on every machine and compiler (std's distributions are not). Streams of
/// neighbouring seeds overlap: seed it with mix_key.
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}
  uint64_t next() { return mix(state_++ * 0xD1342543DE82EF95ULL + 1); }
  uint64_t below(uint64_t bound);  ///< uniform in [0, bound), without bias; bound > 0
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  ///< in [0, 1)
  double normal();                                                            ///< mean 0, variance 1

 private:
  uint64_t state_;
};

/// The numbers 0..n-1 in an order that depends on `seed` alone.
std::vector<int64_t> permutation(int64_t n, uint64_t seed);

}  // namespace syncopate
