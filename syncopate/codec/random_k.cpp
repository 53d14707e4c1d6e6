#include "syncopate/codec/random_k.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/codec/kernels/kernels.h"

namespace syncopate::codec {
namespace {

int64_t size_of(const auto& span) { return static_cast<int64_t>(span.size()); }

/// Calls use(number, position) for the `kept` positions of `key` among `count`, in rising order.
template <typename Use>
void for_each_pick(int64_t count, int64_t kept, uint64_t key, const Use& use) {
  if (kept == 0) return;
  const int64_t width = count / kept, longer = count % kept;  // the first `longer` stretches have one more
  for (int64_t i = 0; i < kept; ++i) {
    const int64_t begin = i * width + std::min(i, longer), room = width + (i < longer ? 1 : 0);
    const uint64_t draw = mix(key + static_cast<uint64_t>(i) * 0xD1342543DE82EF95ULL) >> 32;
    use(i, static_cast<size_t>(begin) + ((draw * static_cast<uint64_t>(room)) >> 32));
  }
}

float value_at(std::span<const uint8_t> from, int64_t number) {
  float value;
  std::memcpy(&value, from.data() + 4 * number, sizeof value);
  return value;
}

void pack(std::span<const float> from, int64_t kept, uint64_t key, std::span<uint8_t> into) {
  for_each_pick(size_of(from), kept, key, [&](int64_t number, size_t at) {
    std::memcpy(into.data() + 4 * number, &from[at], sizeof(float));
  });
}

}  // namespace

void RandomK::encode(std::span<const float> from, std::span<uint8_t> into, uint64_t key) const {
  const int64_t kept = kept_of(size_of(from), ratio_);
  check(size_of(into) == 4 * kept, "room for exactly what is packed");
  if (kernels::kernels().finite(from.data(), size_of(from))) {
    pack(from, kept, key, into);
    return;
  }
  // Whichever element it was, the others must learn of it, whatever they do with those that travel.
  const float none = std::numeric_limits<float>::quiet_NaN();
  for (int64_t i = 0; i < kept; ++i) std::memcpy(into.data() + 4 * i, &none, sizeof none);
}

void RandomK::decode(std::span<const uint8_t> from, std::span<float> into, uint64_t key) const {
  std::fill(into.begin(), into.end(), 0.0f);
  decode_add(from, into, key);
}

void RandomK::decode_add(std::span<const uint8_t> from, std::span<float> into, uint64_t key) const {
  const int64_t kept = kept_of(size_of(into), ratio_);
  check(size_of(from) == 4 * kept, "room for exactly what was packed");
  for_each_pick(size_of(into), kept, key,
                [&](int64_t number, size_t at) { into[at] += value_at(from, number); });
}

bool RandomK::encode_with_rest(std::span<float> from, std::span<float> rest, std::span<uint8_t> into,
                               uint64_t key) const {
  const kernels::Kernels& k = kernels::kernels();
  const int64_t count = size_of(from), kept = kept_of(count, ratio_);
  check(size_of(rest) == count, "a rest for every element");
  if (!k.finite(from.data(), count)) {
    encode(from, into, key);
    return false;
  }
  k.add(rest.data(), from.data(), count);
  encode(from, into, key);
  if (!k.finite(from.data(), count)) return true;  // a sum overflowed: told, and the rest is kept
  std::copy(from.begin(), from.end(), rest.begin());
  for_each_pick(count, kept, key, [&](int64_t, size_t at) { rest[at] = 0; });
  return true;
}

}  // namespace syncopate::codec
