#include "syncopate/base/hash.h"

#include <cstring>

#include "syncopate/base/rng.h"

namespace syncopate {

uint64_t checksum(std::string_view bytes, uint64_t seed) {
  constexpr size_t kWord = sizeof(uint64_t);
  constexpr uint64_t kPrime = 0x9FB21C651E98DF25ULL;
  // Four independent chains keep the multiplier busy: gigabytes per second for checkpoints of any size.
  uint64_t lanes[4] = {mix(seed), mix(seed + 1), mix(seed + 2), mix(seed + 3)};
  size_t at = 0;
  for (; at + 4 * kWord <= bytes.size(); at += 4 * kWord) {
    uint64_t words[4];
    std::memcpy(words, bytes.data() + at, sizeof words);
    for (int lane = 0; lane < 4; ++lane) {
      lanes[lane] = (lanes[lane] ^ words[lane]) * kPrime;
      lanes[lane] ^= lanes[lane] >> 29;
    }
  }
  uint64_t sum = mix(bytes.size());
  for (const uint64_t lane : lanes) sum = mix(sum ^ lane);
  for (; at < bytes.size(); ++at) sum = mix(sum ^ static_cast<unsigned char>(bytes[at]));
  return sum;
}

}  // namespace syncopate
