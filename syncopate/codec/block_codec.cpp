#include "syncopate/codec/block_codec.h"

#include <algorithm>

#include "syncopate/base/error.h"

namespace syncopate::codec {
namespace {

int64_t size_of(const auto& span) { return static_cast<int64_t>(span.size()); }

}  // namespace

int64_t BlockCodec::packed_bytes(int64_t count) const {
  const kernels::Format& f = format();
  const int64_t tail = count % f.bucket;
  return count / f.bucket * f.bucket_bytes + (tail > 0 ? f.tail_bytes(tail) : 0);
}

void BlockCodec::encode(std::span<const float> from, std::span<uint8_t> into, uint64_t) const {
  check(size_of(into) == packed_bytes(size_of(from)), "room for exactly what is packed");
  format().encode(from.data(), into.data(), size_of(from));
}

void BlockCodec::decode(std::span<const uint8_t> from, std::span<float> into, uint64_t) const {
  check(size_of(from) == packed_bytes(size_of(into)), "room for exactly what was packed");
  format().decode(from.data(), into.data(), size_of(into));
}

void BlockCodec::decode_add(std::span<const uint8_t> from, std::span<float> into, uint64_t) const {
  check(size_of(from) == packed_bytes(size_of(into)), "room for exactly what was packed");
  format().decode_add(from.data(), into.data(), size_of(into));
}

bool BlockCodec::encode_with_rest(std::span<float> from, std::span<float> rest, std::span<uint8_t> into,
                                  uint64_t key) const {
  const kernels::Kernels& k = kernels::kernels();
  const kernels::Format& f = format();
  const int64_t count = size_of(from);
  check(size_of(rest) == count && size_of(into) == packed_bytes(count), "room for exactly what is packed");
  if (!k.finite(from.data(), count)) {
    encode(from, into, key);
    return false;
  }
  constexpr int64_t kChunk = 4096;  // whole buckets that stay in the cache from the sum to the rest
  uint8_t* out = into.data();
  for (int64_t at = 0; at < count; at += kChunk, out += kChunk / f.bucket * f.bucket_bytes) {
    const int64_t some = std::min(kChunk, count - at);
    float* const x = from.data() + at;
    k.add(rest.data() + at, x, some);
    f.encode(x, out, some);
    if (k.finite(x, some)) f.rest(out, x, rest.data() + at, some);  // a sum may overflow
  }
  return true;
}

}  // namespace syncopate::codec
