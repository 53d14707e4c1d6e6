#include "syncopate/codec/top_k.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "syncopate/base/error.h"
#include "syncopate/codec/kernels/kernels.h"

namespace syncopate::codec {
namespace {

constexpr int64_t kStretch = 1 << 16;

int64_t size_of(const auto& span) { return static_cast<int64_t>(span.size()); }
int64_t stretches_of(int64_t count) { return (count + kStretch - 1) / kStretch; }
uint32_t magnitude(float x) { return std::bit_cast<uint32_t>(x) & 0x7fffffffu; }

/// Where the parts of a packed tensor begin.
struct Layout {
  Layout(int64_t count, double ratio)
      : kept(kept_of(count, ratio)), places(4 * stretches_of(count)), values(places + 2 * kept) {}
  int64_t kept, places, values;
  int64_t bytes() const { return values + 4 * kept; }
};

/// A magnitude's exponent and first four digits: a bin is 6 % wide.
constexpr int kShift = 19;
constexpr size_t kBins = size_t{1} << (31 - kShift);

/// The least number of bits such that at least `kept` magnitudes have that many or more, whole bins only.
uint32_t floor_of(std::span<const float> from, int64_t kept) {
  // Neighbours often fall into one bin: four tables keep their counts apart.
  std::array<std::array<uint32_t, kBins>, 4> tables{};
  size_t i = 0;
  for (; i + 4 <= from.size(); i += 4) {
    for (size_t t = 0; t < 4; ++t) ++tables[t][magnitude(from[i + t]) >> kShift];
  }
  for (; i < from.size(); ++i) ++tables[0][magnitude(from[i]) >> kShift];
  size_t bin = kBins;
  for (int64_t above = 0; above < kept;) {
    --bin;
    for (const auto& table : tables) above += table[bin];
  }
  return static_cast<uint32_t>(bin) << kShift;
}

/// Calls use(position, value) for every element that was packed.
template <typename Use>
void for_each_packed(std::span<const uint8_t> from, int64_t count, double ratio, const Use& use) {
  const Layout layout(count, ratio);
  check(size_of(from) == layout.bytes(), "room for exactly what was packed");
  int64_t done = 0;
  for (int64_t stretch = 0; stretch < stretches_of(count); ++stretch) {
    uint32_t here;
    std::memcpy(&here, from.data() + 4 * stretch, sizeof here);
    const int64_t begin = stretch * kStretch, room = std::min(kStretch, count - begin);
    if (here > layout.kept - done) throw CommError("a message of top-k holds more elements than it may");
    for (const int64_t end = done + here; done < end; ++done) {
      uint16_t place;
      float value;
      std::memcpy(&place, from.data() + layout.places + 2 * done, sizeof place);
      std::memcpy(&value, from.data() + layout.values + 4 * done, sizeof value);
      if (place >= room) throw CommError("a message of top-k names an element beyond the tensor's end");
      use(begin + place, value);
    }
  }
}

/// Packs the elements at `positions`.
void pack(std::span<const float> from, const std::vector<uint32_t>& positions, double ratio,
          std::span<uint8_t> into) {
  const Layout layout(size_of(from), ratio);
  check(size_of(into) == layout.bytes(), "room for exactly what is packed");
  std::vector<uint32_t> counts(static_cast<size_t>(stretches_of(size_of(from))));
  for (size_t i = 0; i < positions.size(); ++i) {
    ++counts[positions[i] / kStretch];
    const auto place = static_cast<uint16_t>(positions[i] % kStretch);
    std::memcpy(into.data() + layout.places + 2 * static_cast<int64_t>(i), &place, sizeof place);
    std::memcpy(into.data() + layout.values + 4 * static_cast<int64_t>(i), &from[positions[i]], 4);
  }
  if (!counts.empty()) std::memcpy(into.data(), counts.data(), counts.size() * 4);
}

}  // namespace

std::vector<uint32_t> largest_positions(std::span<const float> from, int64_t kept) {
  if (kept == 0) return {};
  const uint32_t floor = kept < size_of(from) ? floor_of(from, kept) : 0;
  std::vector<uint32_t> positions;
  for (size_t begin = 0; begin < from.size(); begin += kStretch) {
    const auto stretch = from.subspan(begin, std::min<size_t>(kStretch, from.size() - begin));
    std::array<uint32_t, kStretch + 16> found;
    const int64_t n =
        kernels::kernels().positions_from(stretch.data(), size_of(stretch), floor, found.data());
    for (int64_t i = 0; i < n; ++i) {
      positions.push_back(static_cast<uint32_t>(begin) + found[static_cast<size_t>(i)]);
    }
  }
  if (size_of(positions) == kept) return positions;
  std::vector<uint32_t> sizes(positions.size());
  std::transform(positions.begin(), positions.end(), sizes.begin(),
                 [&](uint32_t p) { return magnitude(from[p]); });
  std::nth_element(sizes.begin(), sizes.begin() + (kept - 1), sizes.end(), std::greater<>());
  const uint32_t least = sizes[static_cast<size_t>(kept - 1)];
  int64_t equal =
      kept - std::count_if(sizes.begin(), sizes.begin() + kept, [&](uint32_t s) { return s > least; });
  std::erase_if(positions, [&](uint32_t p) {
    const uint32_t size = magnitude(from[p]);
    return size < least || (size == least && equal-- <= 0);
  });
  return positions;
}

int64_t TopK::packed_bytes(int64_t count) const { return Layout(count, ratio_).bytes(); }

void TopK::encode(std::span<const float> from, std::span<uint8_t> into, uint64_t) const {
  // A magnitude that is not finite is above all others, so it travels.
  pack(from, largest_positions(from, kept_of(size_of(from), ratio_)), ratio_, into);
}

void TopK::decode(std::span<const uint8_t> from, std::span<float> into, uint64_t) const {
  std::fill(into.begin(), into.end(), 0.0f);
  for_each_packed(from, size_of(into), ratio_,
                  [&](int64_t at, float value) { into[static_cast<size_t>(at)] = value; });
}

void TopK::decode_add(std::span<const uint8_t> from, std::span<float> into, uint64_t) const {
  for_each_packed(from, size_of(into), ratio_,
                  [&](int64_t at, float value) { into[static_cast<size_t>(at)] += value; });
}

bool TopK::encode_with_rest(std::span<float> from, std::span<float> rest, std::span<uint8_t> into,
                            uint64_t key) const {
  const kernels::Kernels& k = kernels::kernels();
  const int64_t count = size_of(from);
  check(size_of(rest) == count, "a rest for every element");
  if (!k.finite(from.data(), count)) {
    encode(from, into, key);
    return false;
  }
  k.add(rest.data(), from.data(), count);
  const std::vector<uint32_t> positions = largest_positions(from, kept_of(count, ratio_));
  pack(from, positions, ratio_, into);
  if (!k.finite(from.data(), count)) return true;  // a sum overflowed: it travels, and the rest is kept
  std::copy(from.begin(), from.end(), rest.begin());
  for (const uint32_t position : positions) rest[position] = 0;
  return true;
}

}  // namespace syncopate::codec
