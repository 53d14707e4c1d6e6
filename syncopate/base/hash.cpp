#include "syncopate/base/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "syncopate/base/rng.h"

namespace syncopate {

// Four independent chains keep the multiplier busy: gigabytes per second for checkpoints of any size.
Checksum::Checksum(uint64_t seed) : lanes_{mix(seed), mix(seed + 1), mix(seed + 2), mix(seed + 3)} {}

void Checksum::add(std::string_view bytes) {
  const size_t waiting = size_ % sizeof rest_;
  size_ += bytes.size();
  if (waiting > 0) {
    const size_t taken = std::min(bytes.size(), sizeof rest_ - waiting);
    std::memcpy(rest_ + waiting, bytes.data(), taken);
    bytes.remove_prefix(taken);
    if (waiting + taken < sizeof rest_) return;
    add_whole({rest_, sizeof rest_});
  }
  const size_t whole = bytes.size() / sizeof rest_ * sizeof rest_;
  add_whole(bytes.substr(0, whole));
  if (bytes.size() > whole) std::memcpy(rest_, bytes.data() + whole, bytes.size() - whole);
}

void Checksum::add_whole(std::string_view bytes) {
  constexpr uint64_t kPrime = 0x9FB21C651E98DF25ULL;
  uint64_t lanes[4];
  std::memcpy(lanes, lanes_, sizeof lanes);
  for (size_t at = 0; at < bytes.size(); at += sizeof rest_) {
    uint64_t words[4];
    std::memcpy(words, bytes.data() + at, sizeof words);
    for (int lane = 0; lane < 4; ++lane) {
      lanes[lane] = (lanes[lane] ^ words[lane]) * kPrime;
      lanes[lane] ^= lanes[lane] >> 29;
    }
  }
  std::memcpy(lanes_, lanes, sizeof lanes);
}

uint64_t Checksum::value() const {
  uint64_t sum = mix(size_);
  for (const uint64_t lane : lanes_) sum = mix(sum ^ lane);
  for (size_t i = 0; i < size_ % sizeof rest_; ++i) sum = mix(sum ^ static_cast<unsigned char>(rest_[i]));
  return sum;
}

uint64_t checksum(std::string_view bytes, uint64_t seed) {
  Checksum sum(seed);
  sum.add(bytes);
  return sum.value();
}

std::string hexadecimal(uint64_t number) { return fmt::format("{:016x}", number); }

}  // namespace syncopate
